"""Host and DSP meet: calls, queues, memory, sessions, threads."""

from __future__ import annotations

import pytest
from runtime_lab import Lab, built, lab

__all__ = ["built", "lab"]
pytestmark = pytest.mark.sim

LOW, HIGH = 0x20000000, 0xFFF00000
TWO = "sessions=2"


def test_a_call_travels_both_ways(lab: Lab) -> None:
    answer = lab.run("rpc")
    assert answer.status == 0, answer.said
    assert answer.lines["missing"] == "1" and "libnone.so" in answer.said
    assert answer.lines["refused"] == "1"
    assert answer.lines["echo"] == "0" and answer.lines["text"] == "desserts"
    assert answer.lines["priority"] == "192"
    # arguments, stack: all in memory that 32 bits can name
    assert int(answer.lines["places"], 16) < 1 << 32
    assert answer.lines["unknown"] == "1"
    assert answer.lines["count"] == "2"
    assert answer.lines["close"] == "0" and answer.lines["closed"] == "1"


def test_static_data_is_new_after_a_close(lab: Lab) -> None:
    assert lab.run("rpc").lines["again"] == "1"


def test_sessions_share_nothing(lab: Lab) -> None:
    answer = lab.run("sessions", device=TWO)
    assert answer.lines["unreserved"] == "1"
    assert answer.lines["reserve"] == "0 1 19"
    assert answer.lines["full"] == "1"
    assert (answer.lines["a"], answer.lines["b"]) == ("3", "1")
    assert answer.lines["effective"] == "0 19"
    assert answer.lines["apart"] == "1"
    assert answer.lines["close"] == "0 0"
    assert answer.lines["freed"] == "0"


def test_one_session_at_a_time_has_the_vtcm(lab: Lab) -> None:
    answer = lab.run("contend", 1000, device=TWO)
    assert (answer.lines["second"], answer.lines["asked"]) == ("0", "1")


def test_a_session_that_does_not_let_go_makes_the_other_give_up(lab: Lab) -> None:
    answer = lab.run("contend", 400000, device=TWO)
    assert (answer.lines["second"], answer.lines["asked"]) == ("12", "1")


@pytest.mark.parametrize("how", ["thread", "callback"])
def test_packets_go_there_and_back(lab: Lab, how: str) -> None:
    answer = lab.run("queue", how)
    assert answer.status == 0, answer.said
    assert "bad" not in answer.text
    for name in ("unmapped", "empty", "late", "blocked", "toosmall", "over"):
        assert answer.lines[name] == "1", name
    for name in ("create", "pin", "start", "small", "stop", "close", "beside"):
        assert answer.lines[name] == "0", name
    assert 2 <= int(answer.lines["fits"]) <= 8
    assert answer.lines["added"] == "100 100"


def test_a_session_maps_as_much_as_the_device_lets_it(lab: Lab) -> None:
    answer = lab.run("memory", device=f"arch=81,vmem={6 * 256 << 20}")
    assert answer.status == 0, answer.said
    assert answer.lines["zero"] == "1" and answer.lines["nofd"] == "-1"
    assert answer.lines["mapped"] == "6"
    for name in ("low", "same", "room", "toolong", "wide"):
        assert answer.lines[name] == "1", name


def test_extended_mappings_need_v81(lab: Lab) -> None:
    assert lab.run("memory", device=f"arch=79,vmem={6 * 256 << 20}").lines["wide"] == "0"


def test_everything_a_kernel_points_to_fits_32_bits(lab: Lab) -> None:
    assert all(LOW <= at < HIGH for at in lab.kernel("places").results())


def test_the_device_answers_for_itself(lab: Lab) -> None:
    answer = lab.run("control", device="arch=81,cores=2")
    assert answer.lines["arch"] == "0 0x81"
    assert answer.lines["domains"] == "0 2"
    assert answer.lines["domain0"] == "3 cdsp 0" and answer.lines["domain1"] == "4 cdsp1 1"


def test_threads_wait_for_each_other(lab: Lab) -> None:
    answer = lab.kernel("threads", device="threads=6")
    rounds, status, priority, hardware = answer.results()
    assert (rounds, status, priority) == (100, 77, 99)
    assert hardware == 6 << 32 | 6 << 8


def test_the_matrix_unit_needs_power_and_a_lock(lab: Lab) -> None:
    assert lab.kernel("hmx_lock").results()[:3] == [0, 1, 0]


def test_no_power_for_what_is_not_there(lab: Lab) -> None:
    assert lab.kernel("hmx_power").results()[:2] == [0, 0]
    power, clock = lab.kernel("hmx_power", device="hmx_clock=0").results()[:2]
    assert power == 0 and clock != 0


def test_a_matrix_unit_that_is_not_there_can_not_be_acquired(lab: Lab) -> None:
    assert lab.kernel("nothing", device="hmx=0").lines["nothing"].split()[0] == "2"


def test_clocks_run_at_the_devices_rate(lab: Lab) -> None:
    answer = lab.kernel("clocks", device="hz=1000000000", HEXPATCH_SIM_FARF="1")
    cycles, usec = answer.results()[:2]
    assert usec >= 20000 and abs(cycles - 1000 * usec) < 5_000_000
    assert f"after {usec} us" in answer.said and "never" not in answer.said


def test_a_log_is_silent_unless_asked_for(lab: Lab) -> None:
    assert "after" not in lab.kernel("clocks").said


def test_dividing_by_zero_is_what_it_is_on_the_phone(lab: Lab) -> None:
    answer = lab.run("divide")
    assert answer.status == 0
    assert answer.lines["quotient"] == "0 0 0" and answer.lines["remainder"] == "100"
