"""A stand-in for test-backend-ops: same options, same console output, scripted results.

$TBO_FAKE names a JSON file: `cases` (per program name, else "*"), `cases_of` (per
library), `fused` (not in support mode),
`libs` (what a CPU library does to a case: fail, fail@SEEDS, unsupported, crash, killed, hang), `faults`
(what a library's simulated DSP reports), and switches.
"""

import json
import os
import re
import sys
import time
from pathlib import Path

script = Path(os.environ["TBO_FAKE"])
config = json.loads(script.read_text())
exe = Path(sys.argv[0]).resolve()
args = sys.argv[1:]
with script.with_name(script.name + ".log").open("a") as log:
    log.write(json.dumps([exe.name, *args]) + "\n")


def out(text):
    sys.stdout.write(text)


def usage():
    out("Usage: test-backend-ops [mode] [options]\n\nOptions:\n")
    if config.get("parallel", True):
        out("  -j <n>                      run tests using <n> parallel worker threads\n")
    sys.exit(1)


mode, options, at = "test", {}, 0
while at < len(args):
    if args[at] in ("test", "support"):
        mode = args[at]
    elif args[at] in ("-o", "-b", "-p") or (args[at] == "-j" and config.get("parallel", True)):
        at += 1
        options[args[at - 1]] = args[at]
    else:
        usage()
    at += 1
if config.get("usage") and "-o" in options and options["-o"] != "NO_SUCH_OP":
    usage()

devices = []
if not config.get("no_library"):
    devices.append(("CPU", exe.with_name("libggml-cpu.so").read_text()))
    second = os.environ.get("GGML_BACKEND_PATH")
    if second and not config.get("second_missing"):
        devices.append(("CPU", Path(second).read_text()))
if config.get("device"):
    devices = [(config["device"], lib) for _, lib in devices]
if config.get("blas"):
    devices.insert(0, ("BLAS", ""))

entries = re.findall(r"(?:\([^)]*\)|[^,(])+", options.get("-o", ""))
cases = config["cases"].get(exe.name, config["cases"].get("*"))
own = exe.with_name("libggml-cpu.so")
if own.exists():
    cases = config.get("cases_of", {}).get(own.read_text().strip(), cases)
fused = set(config.get("fused", []))


def chosen(op, params):
    if "-p" in options and not re.search(options["-p"], params):
        return False
    if mode == "support" and op in fused:
        return False
    return "-o" not in options or op in entries or f"{op}({params})" in entries


if "-p" in options and options["-p"].startswith("(["):
    sys.stderr.write("terminate called after throwing an instance of 'std::regex_error'\n")
    sys.stderr.flush()
    os.abort()

reference = next((config["libs"].get(lib.strip(), {}) for _, lib in devices if lib), {})
G, R, Z = "\x1b[1;32m", "\x1b[1;31m", "\x1b[0m"
out(f"Testing {len(devices)} devices\n\n")
good = 0
listing = "HEXPATCH_LIST" in os.environ
errors = []
for number, (name, lib) in enumerate(devices, 1):
    out(f"Backend {number}/{len(devices)}: {name}\n")
    if name != options.get("-b", name):
        out("  Skipping\n")
        good += 1
        continue
    out("  Device description: fake\n  Device memory: 1 MB (1 MB free)\n\n")
    does = config["libs"].get(lib.strip(), {})
    passed = failed = 0
    failing = []
    for op, params in cases:
        if not chosen(op, params):
            continue
        text = f"{op}({params})"
        what = "unsupported" if name == "BLAS" else does.get(text, does.get(op, "ok"))
        if what.startswith("fail@"):
            what = "fail" if os.environ["HEXPATCH_SEED"] in what[5:].split(",") else "ok"
        if listing:
            what = "unsupported"
        if mode == "test" and reference.get(text, reference.get(op)) == "unsupported":
            what = "unsupported"  # both backends are asked
        if mode == "support":
            out(f"  {text}: {R + 'NOT ' if what == 'unsupported' else G}SUPPORTED{Z}\n")
            continue
        if what == "unsupported":
            out(f"  {text}: not supported [{name}] \n")
            continue
        if what == "crash":
            os.abort()  # what is buffered is lost
        if what == "killed":
            os.kill(os.getpid(), 9)
        if what == "hang":
            time.sleep(60)
        if what == "fail":
            out(f"[{op}] ERR = 0.5 > 0.0000001 ")
        out(f"  {text}: ")
        sys.stdout.flush()
        out(f"{G}OK{Z}\n" if what == "ok" else f"{R}FAIL{Z}\n")
        errors.append(f"{config.get('errors', {}).get(lib.strip(), 1e-9)}\t{op}\t-1\n")
        passed, failed = passed + (what == "ok"), failed + (what == "fail")
        if what == "fail":
            failing.append(text)
    if mode == "test":
        if config.get("cut"):
            sys.exit(0)
        total = len(cases) if config.get("counts_all") else passed + failed
        out(f"  {total - failed}/{total} tests passed\n")
        if failing:
            out("\nFailing tests:\n" + "".join(f"  {text}\n" for text in failing))
    out(f"  Backend {name}: {R + 'FAIL' if failed else G + 'OK'}{Z}\n")
    good += not failed
if "HEXPATCH_ERRORS" in os.environ:
    Path(os.environ["HEXPATCH_ERRORS"]).write_text("".join(errors))
if "HEXPATCH_SIM_REPORT" in os.environ:
    said = config.get("faults", {}).get(devices[-1][1].strip(), []) if errors else []
    ops = [{"op": "op_x", "status": 0, "n": config.get("counters", {})}] * len(errors)
    rows = [*ops, {"total": {}, "faults": said}]
    Path(os.environ["HEXPATCH_SIM_REPORT"]).write_text("".join(json.dumps(r) + "\n" for r in rows))
whole = good == len(devices)
out(f"{good}/{len(devices)} backends passed\n{G + 'OK' if whole else R + 'FAIL'}{Z}\n")
sys.exit(0 if whole else 1)
