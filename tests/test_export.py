"""Export: the field case's groups and titles, nothing leaks, nothing is pushed, nothing churns."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conftest import FIELD, World, commit, edit, git, hexpatch

from hexpatch import export, titles, workspace
from hexpatch.errors import HexpatchError, UsageError
from hexpatch.evidence import Report, to_json
from hexpatch.export import Exported
from hexpatch.prbranch import public_message
from hexpatch.session import opened

pytestmark = pytest.mark.slow  # the rest of the suite stays quick without it

CASE = FIELD / "24-pr-export"
CASES = Path(__file__).parent / "cases" / "pr-export"
TREE_GATE = "1e3dd5245e000d276dab8f1c35b62b02f09e4842"
TREE_COPY = "8c57e02dea8bf0ddacd1587f66bf08c5089855d5"
STORE = ".hexpatch/upstream.git"


@pytest.fixture
def house(tmp_path: Path, field: Any) -> World:
    """The field case's six patches, imported; groups come from its trailers."""
    upstream, _ = field("24")
    root = tmp_path / "house"
    root.mkdir()
    made = World(root, upstream)
    made.ok("init", "--repo", str(upstream), "--base", "base")
    made.ok("import", "base..stack")
    return made


def run(world: World, *names: str, **options: Any) -> list[Exported]:
    with opened(world.root, "hexpatch export", lambda text: None) as session:
        return export.run(session, names, **options)


def one(world: World, name: str, **options: Any) -> Exported:
    return run(world, name, **options)[0]


def refs(world: World) -> str:
    return git(world.root / STORE, "for-each-ref", "refs/heads", "refs/hexpatch")


def tree_of(folder: Path) -> dict[str, tuple[bytes, int]]:
    found = sorted(p for p in folder.rglob("*") if p.is_file())
    return {str(p.relative_to(folder)): (p.read_bytes(), p.stat().st_mtime_ns) for p in found}


def messages(world: World, made: Exported) -> str:
    return git(world.root / STORE, "log", "--format=%B", f"{made.base}..{made.tip}")


def series(world: World, old: str, new: str) -> None:
    edit(world.root / "series.yaml", old, new)


def amend(world: World, name: str, old: str, new: str) -> None:
    """Change a patch's file, then apply."""
    path = world.root / "patches" / f"{name}.patch"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    world.ok("apply")


# --- titles


def title_rows() -> list[tuple[str, str]]:
    lines = (CASE / "titles.tsv").read_text().splitlines()
    rows = [line.split("\t") for line in lines if not line.startswith("#")]
    return [(row[0], row[1]) for row in rows]


@pytest.mark.parametrize(("title", "verdict"), title_rows())
def test_titles_of_the_field(title: str, verdict: str) -> None:
    found = titles.check_title(title)
    worst = "error" if any(s == "error" for s, _ in found) else "warn" if found else "ok"
    assert worst == verdict, found


@pytest.mark.parametrize(
    ("title", "verdict"),
    [
        ("CUDA : fix the row pass", "ok"),
        ("ggml : add a thing, see (ggml-org/ggml#12)", "ok"),
        ("docs: fix two typos", "ok"),
        ("server + ui : show the pace", "ok"),
        ("test-backend-ops : add a case...", "ok"),
        ("[hexagon][v75] htp : keep the tags", "warn"),
        ("fix(htp)!: the row pass", "warn"),
        ("fix: the row pass", "warn"),
        ("make it work: the row pass", "error"),
        ("", "error"),
        ("WIP: htp", "error"),
        ("squash! htp : fix the row pass", "error"),
        ("htp : fix the\trow pass", "warn"),
    ],
)
def test_more_titles(title: str, verdict: str) -> None:
    found = titles.check_title(title)
    assert (found[0][0] if found else "ok") == verdict, found


def test_a_refused_title_keeps_everything(house: World) -> None:
    series(house, "  - name: copy\n", '  - name: copy\n    title: "[WIP] htp : faster copy"\n')
    before = refs(house)
    with pytest.raises(HexpatchError, match="draft pull request"):
        run(house)
    assert refs(house) == before
    assert one(house, "copy", force=True).version == 1


def test_fixups_are_not_exported(house: World) -> None:
    amend(house, "tests-add-gate-case", "tests : add gate case", "fixup! tests : add gate case")
    with pytest.raises(HexpatchError, match="autosquash"):
        run(house, "gate")


@pytest.mark.parametrize("title", [t for t, v in title_rows() if v == "ok"])
def test_good_titles_arrive_byte_for_byte(house: World, title: str) -> None:
    amend(house, "htp-faster-copy", "htp : faster copy", title)
    made = one(house, "copy")
    assert messages(house, made) == title
    assert title in (made.folder / "checklist.md").read_text()
    assert title in (made.folder / "changelog.md").read_text()
    assert made.warnings == ()


# --- groups


def test_gate_from_base(house: World) -> None:
    made = one(house, "gate")
    assert (made.tree, made.branch, made.version, made.changed) == (TREE_GATE, "gate", 1, True)
    assert made.patches == ("htp-add-gate-op", "tests-add-gate-case", "docs-describe-gate")
    assert made.lines == 4
    assert git(house.root / STORE, "rev-parse", "refs/heads/gate") == made.tip
    assert made.push == f"git -C {house.checkout} push <your-fork> gate"


def test_gate_from_main_conflicts_and_leaves_nothing(house: World) -> None:
    before = refs(house)
    with pytest.raises(HexpatchError) as caught:
        run(house, onto="main")
    text = caught.value.message
    assert "gate: docs-describe-gate does not fit on" in text
    assert "docs/guide.md" in text
    assert "docs : upstream line (#140)" in text
    assert refs(house) == before
    assert not (house.root / ".hexpatch" / "export").exists()


def test_copy_from_main(house: World) -> None:
    made = one(house, "copy", onto="main")
    assert made.tree == TREE_COPY
    assert made.stacked_on == ()


@pytest.mark.parametrize("onto", [None, "main"])
def test_gate_v75_is_stacked_on_gate(house: World, onto: str | None) -> None:
    made = one(house, "gate-v75", onto=onto)
    assert made.patches == ("htp-add-gate-op", "htp-gate-on-v75")
    assert made.stacked_on == ("gate",)
    assert any("stacked on gate, which has to go first" in w for w in made.warnings)
    assert "stacked on gate" in (made.folder / "checklist.md").read_text()


def test_declared_needs_come_along(house: World) -> None:
    series(
        house,
        "  - name: htp-gate-on-v75\n",
        "  - name: htp-gate-on-v75\n    needs: [htp-faster-copy]\n",
    )
    made = one(house, "gate-v75")
    assert made.patches == ("htp-add-gate-op", "htp-faster-copy", "htp-gate-on-v75")
    assert made.stacked_on == ("gate", "copy")


def test_an_ungrouped_need_comes_along_and_is_told(house: World) -> None:
    series(house, "  - name: copy\n    patches: [htp-faster-copy]\n", "")
    series(
        house,
        "  - name: htp-gate-on-v75\n",
        "  - name: htp-gate-on-v75\n    needs: [htp-faster-copy]\n",
    )
    made = one(house, "gate-v75")
    assert "htp-faster-copy" in made.patches
    assert any("htp-faster-copy is in no group" in w for w in made.warnings)


def test_private_patches_stay_in_the_house(house: World) -> None:
    for made in run(house):
        shown = git(house.root / STORE, "log", "-p", f"{made.base}..{made.tip}")
        mails = b"".join(data for data, _ in tree_of(made.folder).values()).decode()
        for text in (shown, mails):
            assert "/home/dev-one/sdk" not in text
            assert "local-build-preset" not in text
            assert "Internal-Note" not in text
            assert "ask Dev Two" not in text
            assert "Topic:" not in text
        assert "local-build-preset" not in made.patches
    with pytest.raises(HexpatchError, match="never leaves the house"):
        run(house, "local-build-preset")


def test_a_patch_on_a_private_one_is_refused(house: World) -> None:
    series(
        house,
        "  - name: htp-gate-on-v75\n",
        "  - name: htp-gate-on-v75\n    needs: [local-build-preset]\n",
    )
    with pytest.raises(HexpatchError, match="htp-gate-on-v75 builds on private patch local-build-"):
        run(house, "gate-v75")


def test_a_patch_that_was_found_to_build_on_a_private_one_is_refused(house: World) -> None:
    series(
        house,
        "    patches: [htp-add-gate-op, tests-add-gate-case, docs-describe-gate]\n",
        "    patches: [tests-add-gate-case]\n",
    )
    series(house, "  - name: htp-add-gate-op\n", "  - name: htp-add-gate-op\n    state: private\n")
    before = refs(house)
    with pytest.raises(HexpatchError, match="htp-gate-on-v75 builds on private patch htp-add-gate"):
        run(house)
    assert refs(house) == before


def test_names_that_are_no_groups(house: World) -> None:
    with pytest.raises(UsageError) as caught:
        run(house, "gat")
    assert caught.value.hint == "did you mean gate?"
    with pytest.raises(UsageError) as caught:
        run(house, "htp-faster-copy")
    assert caught.value.hint == "`hexpatch export copy`"


def test_a_group_that_upstream_has(house: World) -> None:
    git(house.upstream, "checkout", "-q", "main")
    git(house.upstream, "cherry-pick", "stack~2")
    with pytest.raises(HexpatchError, match=r"nothing is left of it on .*exactly"):
        run(house, "copy", onto="main")


@pytest.mark.parametrize(
    ("line", "hint"), [("state: hold", "take `state: hold` from"), ("held: v1", "as onto v1")]
)
def test_held_patches(house: World, line: str, hint: str) -> None:
    series(house, "  - name: htp-faster-copy\n", f"  - name: htp-faster-copy\n    {line}\n")
    with pytest.raises(HexpatchError, match="htp-faster-copy is on hold") as caught:
        run(house, "copy", force=True)
    assert hint in str(caught.value.hint)
    assert [made.name for made in run(house)] == ["gate", "gate-v75"]


# --- messages

MESSAGES = json.loads((CASES / "messages.json").read_text())


@pytest.mark.parametrize("case", MESSAGES, ids=lambda case: str(case["what"]))
def test_house_trailers_go(case: dict[str, str]) -> None:
    assert public_message(case["in"], ["Secret"]) == case["out"]


def test_author_date_and_sign_off_stay(house: World) -> None:
    made = one(house, "gate")
    form = "--format=%an|%ae|%ad|%cn|%cd|%B"
    first = git(house.root / STORE, "log", "--reverse", form, f"{made.base}..{made.tip}")
    assert first.startswith(
        "Dev One|dev@example.org|Mon Jan 1 00:04:00 2024 +0000|Dev One|Mon Jan 1 00:04:00 2024"
        " +0000|htp : add gate op\n\nThe gate op was missing.\n\n"
        "Signed-off-by: Dev One <dev@example.org>"
    )


def test_a_note_left_in_the_text_is_told(house: World) -> None:
    note = "Internal-Note: ask Dev Two before sending\n"
    amend(house, "docs-describe-gate", note, f"{note}\nMore words.\n")
    made = one(house, "gate")
    assert any("`Internal-Note:` stands in the message's text" in w for w in made.warnings)


# --- again and again


def test_two_exports_are_the_same_to_the_byte(house: World) -> None:
    first = run(house)
    files, names, log = tree_of(house.root / ".hexpatch/export"), refs(house), house.ok("log").out
    second = run(house)
    assert tree_of(house.root / ".hexpatch/export") == files
    assert refs(house) == names
    assert house.ok("log").out == log
    assert [m.changed for m in second] == [False] * 3
    assert [(m.tip, m.version) for m in second] == [(m.tip, m.version) for m in first]


def test_another_machine_gets_the_same_ids(house: World, tmp_path: Path) -> None:
    import shutil

    first = run(house)
    shutil.rmtree(house.root / ".hexpatch")
    assert [m.tip for m in run(house)] == [m.tip for m in first]


def test_the_checkout_stays_as_it_is(house: World) -> None:
    (house.checkout / "notes.txt").write_text("mine\n")
    (house.checkout / "src/table.txt").write_text("half done\n")
    before = house.git("status", "--porcelain"), house.git("symbolic-ref", "HEAD")
    run(house)
    assert (house.git("status", "--porcelain"), house.git("symbolic-ref", "HEAD")) == before


def test_v2_has_a_changelog_and_a_range_diff(house: World) -> None:
    first = one(house, "gate")
    amend(house, "docs-describe-gate", "+gate\n", "+gate, in words\n")
    made = one(house, "gate")
    assert (made.version, made.changed) == (2, True)
    text = (made.folder / "changelog.md").read_text()
    assert text.index("## v2") < text.index("## v1")
    assert "- changed: `docs : describe gate`" in text
    assert "- unchanged: `htp : add gate op`" in text
    span = (made.folder / "range-diff.txt").read_text()
    assert span.strip() in text
    assert " = 1:" in span
    assert "docs : describe gate" in span
    assert made.push.endswith("push --force-with-lease <your-fork> gate")
    assert [m.name[:8] for m in made.mails] == [
        f"v2-{n:04}-" for n in range(1, len(made.mails) + 1)
    ]
    assert f"Subject: [PATCH v2 1/{len(made.mails)}] " in made.mails[0].read_text()
    kept = git(house.root / STORE, "rev-parse", "refs/hexpatch/export/gate/v1")
    assert kept == first.tip
    assert not one(house, "gate").changed


def test_a_new_message_is_a_new_version(house: World) -> None:
    one(house, "copy")
    amend(house, "htp-faster-copy", "htp : faster copy", "htp : copy faster")
    made = one(house, "copy")
    assert made.version == 2
    assert "- changed: `htp : copy faster`" in (made.folder / "changelog.md").read_text()


def test_house_trailers_make_no_version(house: World) -> None:
    one(house, "gate")
    amend(house, "docs-describe-gate", "ask Dev Two", "ask Dev Three")
    made = one(house, "gate")
    assert (made.version, made.changed) == (1, False)


def test_a_moved_base_is_no_version(house: World) -> None:
    first = one(house, "copy")
    made = one(house, "copy", onto="main")
    assert (made.version, made.changed) == (1, True)
    assert made.tip != first.tip
    assert git(house.root / STORE, "rev-parse", "refs/heads/copy") == made.tip
    assert "nothing changed" in (made.folder / "changelog.md").read_text()
    assert not one(house, "copy", onto="main").changed


def test_rule_files_that_moved_with_the_base_are_told(house: World) -> None:
    one(house, "copy")
    git(house.upstream, "checkout", "-q", "main")
    (house.upstream / "AGENTS.md").write_text("rules\n")
    git(house.upstream, "add", "-A")
    git(house.upstream, "commit", "-q", "-m", "docs : rules")
    made = one(house, "copy", onto="main")
    assert "AGENTS.md appeared between" in (made.folder / "checklist.md").read_text()
    assert not one(house, "copy", onto="main").changed


def test_undo_takes_an_export_back(house: World) -> None:
    before = refs(house).replace("refs/hexpatch/ops", "")
    run(house)
    house.ok("undo")
    heads = git(house.root / STORE, "for-each-ref", "refs/heads", "refs/hexpatch/export")
    assert heads.count("\n") == 0
    assert "refs/heads/stack" in heads
    assert "refs/heads/gate" not in before
    assert [m.version for m in run(house)] == [1, 1, 1]


# --- mails


def test_plain_am_takes_the_mails(house: World, tmp_path: Path) -> None:
    for made in run(house):
        clone = tmp_path / f"clone-{made.name}"
        subprocess.run(["git", "clone", "-q", str(house.upstream), str(clone)], check=True)
        git(clone, "checkout", "-q", "-B", "pr", made.base)
        git(clone, "am", "-q", *map(str, made.mails))
        assert git(clone, "rev-parse", "HEAD^{tree}") == made.tree
        assert git(clone, "log", "--format=%B", f"{made.base}..") == messages(house, made)
        assert [m.name[:5] for m in made.mails] == [
            f"{n:04}-" for n in range(1, len(made.mails) + 1)
        ]


def test_mails_that_am_would_change_are_told(house: World) -> None:
    amend(house, "htp-faster-copy", "htp : faster copy", "[v75] htp : faster copy")
    made = one(house, "copy")
    assert any("plain `git am` changes the message" in w for w in made.warnings)
    assert messages(house, made) == "[v75] htp : faster copy"


def test_mails_that_am_would_not_take_are_told(house: World) -> None:
    one(house, "copy")
    (house.checkout / "src/copy.c").write_bytes(b"copy body, faster\r\n")
    house.git("commit", "-q", "-am", "htp : crlf line ends")
    house.ok("refresh")
    series(house, "patches: [htp-faster-copy]", "patches: [htp-faster-copy, htp-crlf-line-ends]")
    made = one(house, "copy")
    assert any("needs `git am --keep-cr`" in w for w in made.warnings)
    mbox = "From 1234567890123456789012345678901234567890 Mon Sep 17 00:00:00 2001\n"
    amend(house, "htp-add-gate-op", "The gate op was missing.\n", f"Quote:\n\n>{mbox}")
    assert not any("fails in" in w for w in one(house, "gate").warnings)


def test_owned_files_are_in_the_branch(stacked: World, tmp_path: Path) -> None:
    assert (stacked.root / "src/htp/kernel.c").exists()
    series(
        stacked, "groups: []\n", "groups:\n  - name: kernel\n    patches: [hexagon-add-a-kernel]\n"
    )
    made = one(stacked, "kernel")
    kernel = "ggml/src/ggml-hexagon/htp/kernel.c"
    assert "int kernel" in git(stacked.root / STORE, "show", f"{made.tip}:{kernel}")
    assert made.patches == ("hexagon-add-a-kernel",)
    git(stacked.upstream, "checkout", "-q", "-B", "pr", "v1")
    git(stacked.upstream, "am", "-q", *map(str, made.mails))
    assert git(stacked.upstream, "rev-parse", "HEAD^{tree}") == made.tree


@pytest.mark.parametrize(("case", "count"), [("06", 3), ("03", 5)])
def test_binary_and_odd_subjects(tmp_path: Path, field: Any, case: str, count: int) -> None:
    upstream, source = field(case)
    root = tmp_path / "house"
    root.mkdir()
    world = World(root, upstream)
    world.ok("init", "--repo", str(upstream), "--base", "base")
    world.ok("import", *map(str, sorted((source / "patches").glob("*.patch"))))
    names = [p["name"] for p in world.ok("series", "--json").json["patches"]]
    series(world, "groups: []\n", f"groups:\n  - name: all\n    patches: [{', '.join(names)}]\n")
    made = one(world, "all", force=True)
    assert len(made.mails) == count
    assert len({m.name for m in made.mails}) == count
    git(upstream, "checkout", "-q", "-B", "pr", "base")
    git(upstream, "am", "-q", "--keep-non-patch", *map(str, made.mails))
    assert git(upstream, "rev-parse", "HEAD^{tree}") == made.tree
    assert git(upstream, "log", "--format=%B", "base..") == messages(world, made)


# --- branches of others


def test_a_foreign_branch_is_not_overwritten(house: World) -> None:
    store = house.root / STORE
    git(store, "branch", "gate", "refs/hexpatch/base")
    with pytest.raises(HexpatchError, match="branch gate has other commits"):
        run(house)
    assert git(store, "rev-parse", "gate") == git(store, "rev-parse", "refs/hexpatch/base")
    assert one(house, "gate", force=True).tip == git(store, "rev-parse", "gate")


def test_own_commits_on_an_exported_branch_are_kept(house: World) -> None:
    made = one(house, "copy")
    house.git("switch", "-q", "copy")
    mine = commit(house, "mine", extra="x\n")
    house.git("switch", "-q", "stack")
    amend(house, "htp-faster-copy", "faster\n", "fastest\n")
    with pytest.raises(HexpatchError, match="branch copy has other commits"):
        run(house, "copy")
    assert git(house.root / STORE, "rev-parse", "copy") == mine != made.tip


def test_a_branch_that_is_checked_out_is_refused(house: World) -> None:
    one(house, "copy")
    git(house.root / STORE, "worktree", "add", "-q", str(house.root / "wt"), "copy")
    assert not one(house, "copy").changed
    amend(house, "htp-faster-copy", "faster\n", "fastest\n")
    with pytest.raises(HexpatchError, match="branch copy is checked out"):
        run(house, "copy", force=True)


@pytest.mark.parametrize("there", ["gate/old", "pr"])
def test_branches_that_git_cannot_hold(house: World, there: str) -> None:
    git(house.root / STORE, "branch", there, "refs/hexpatch/base")
    series(house, "  - name: copy\n", "  - name: copy\n    branch: pr/copy\n")
    with pytest.raises(HexpatchError, match="can't stand beside branch"):
        run(house, force=True)


def test_a_group_with_its_own_branch_name(house: World) -> None:
    series(house, "  - name: copy\n", "  - name: pr/copy\n    branch: up/faster-copy\n")
    made = one(house, "pr/copy")
    assert made.branch == "up/faster-copy"
    assert made.folder.name == "pr%2Fcopy"
    assert git(house.root / STORE, "rev-parse", "refs/heads/up/faster-copy") == made.tip
    assert not one(house, "pr/copy").changed


def test_branch_stack_is_ours(house: World) -> None:
    series(house, "  - name: copy\n", "  - name: copy\n    branch: stack\n")
    with pytest.raises(HexpatchError, match="no branch can be named stack"):
        run(house, force=True)


# --- the folder


def test_the_checklist_is_empty_where_a_person_writes(house: World) -> None:
    git(house.upstream, "checkout", "-q", "main")
    template = house.upstream / ".github/pull_request_template.md"
    template.parent.mkdir()
    template.write_text(
        "## Overview\n\n## Requirements\n\n- AI usage disclosure: <!-- YES / NO -->\n"
    )
    git(house.upstream, "add", "-A")
    git(house.upstream, "commit", "-q", "-m", "docs : template")
    made = one(house, "copy", onto="main")
    text = (made.folder / "checklist.md").read_text()
    assert text.endswith(template.read_text())
    assert "[x]" not in text.lower()
    for line in ("- [ ] title:\n", "- [ ] issue number:\n", "and how:\n", "in hours:\n"):
        assert line in text
    assert "no evidence is recorded" in text
    assert "`hexpatch validate`" in (made.folder / "evidence.md").read_text()


def test_evidence_of_the_tree_is_copied(house: World) -> None:
    results = house.root / ".hexpatch/results/cpu"
    results.mkdir(parents=True)
    report = Report(
        target="cpu",
        base_tree="b" * 40,
        stack_tree=TREE_GATE,
        ops=("ADD",),
        params="n=.*,m=.*|<b>",
        totals={"passed": 7, "failed": 0},
        cases=(),
        per_op=(),
        notes=(),
        limits=(),
        problems=("the stack has faults",),
        seconds=1.0,
        tools={"checks": "bounds"},
        judged="group gate",
    )
    (results / "one.json").write_text(to_json(report))
    (results / "one.html").write_text("<p>page</p>")
    (results / "one-kept.json").write_text(to_json(replace(report, judged="")))
    (results / "other.json").write_text(to_json(replace(report, stack_tree="0" * 40)))
    made = one(house, "gate")
    assert {p.name for p in (made.folder / "evidence").iterdir()} == {
        "cpu-one.json",
        "cpu-one.html",
    }
    # as code: Markdown would take the stars and the rest for its own
    asked = "`-o ADD -p n=.*,m=.*|<b>, checks bounds`"
    said = f"target cpu, {asked}: `not a result: the stack has faults`"
    assert said in (made.folder / "evidence.md").read_text()
    assert said in (made.folder / "checklist.md").read_text()


def test_what_a_person_wrote_is_kept(house: World) -> None:
    made = one(house, "copy")
    ticked = made.folder / "checklist.md"
    words = ticked.read_text().replace("- [ ] title:", "- [x] title: htp : faster copy")
    ticked.write_text(words)
    (made.folder / "cover.md").write_text("mine\n")
    assert not one(house, "copy").changed
    amend(house, "htp-faster-copy", "faster\n", "fastest\n")
    assert one(house, "copy").version == 2
    assert ticked.read_text() == words
    assert (made.folder / "cover.md").read_text() == "mine\n"
    renewed = made.folder / "checklist.new.md"
    assert "# Checklist: copy v2" in renewed.read_text()
    assert not one(house, "copy").changed
    renewed.unlink()
    one(house, "copy")
    assert not renewed.exists()


def test_a_lost_or_broken_folder_is_made_again(house: World) -> None:
    import shutil

    made = one(house, "gate")
    before = {name: data for name, (data, _) in tree_of(made.folder).items()}
    shutil.rmtree(made.folder)
    assert one(house, "gate").changed
    (made.folder / "mails/0001-htp-add-gate-op.patch").write_text("broken")
    (made.folder / "changelog.md").unlink()
    assert one(house, "gate").changed
    assert {name: data for name, (data, _) in tree_of(made.folder).items()} == before
    made.folder.rename(made.folder.with_name(".gate.old"))  # killed between two renames
    assert not one(house, "gate").changed


def test_a_folder_of_somebody_else_is_left_alone(house: World, tmp_path: Path) -> None:
    out = tmp_path / "out"
    (out / "gate").mkdir(parents=True)
    (out / "gate" / "thesis.txt").write_text("mine\n")
    before = refs(house)
    with pytest.raises(HexpatchError, match="not an export of this tool"):
        run(house, out=out)
    assert refs(house) == before
    assert (out / "gate" / "thesis.txt").read_text() == "mine\n"


def test_a_kill_between_record_and_rename_is_repaired(
    house: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    one(house, "copy")
    amend(house, "htp-faster-copy", "faster\n", "fastest\n")

    def killed(folder: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(workspace, "swap_in", killed)
        with pytest.raises(KeyboardInterrupt):
            run(house, "copy")
    made = one(house, "copy")
    assert (made.version, made.changed) == (2, False)  # it was completed before
    assert "## v2" in (made.folder / "changelog.md").read_text()
    assert sorted(p.name for p in made.folder.parent.iterdir()) == ["copy"]


# --- the command line


def test_command_line(house: World, tmp_path: Path) -> None:
    ran = house.ok("export", "--json", "--out", str(tmp_path / "out"))
    groups = {g["name"]: g for g in ran.json["groups"]}
    assert list(groups) == ["gate", "copy", "gate-v75"]
    assert groups["gate"]["tree"] == TREE_GATE
    assert Path(groups["gate"]["mails"][0]).is_absolute()
    assert {"name", "branch", "base", "tip", "tree", "mails"} <= set(groups["gate"])
    house.usage_error("export", "gat", says="did you mean gate?")
    house.fails("export", "--onto", "main", says="docs/guide.md")


def test_no_groups(stacked: World) -> None:
    assert run(stacked) == []


def test_commits_that_are_not_refreshed_are_refused(house: World) -> None:
    commit(house, "htp : more", extra="x\n")
    with pytest.raises(HexpatchError, match="not in patches/ yet"):
        run(house)


@pytest.mark.parametrize("out", ["patches", "src/x", ".hexpatch", ".hexpatch/llama.cpp/x", "link"])
def test_the_series_folders_are_no_output(house: World, out: str) -> None:
    (house.root / "link").symlink_to("patches")
    before = refs(house), house.files()
    house.fails("export", "--out", out, says="is in the way of")
    assert (refs(house), house.files()) == before
    ran = hexpatch(house.root.parent, "-C", house.root.name, "export", "--out", "out")
    assert ran.code == 0, ran.err
    assert list((house.root / "out").iterdir())
    house.ok("export", "--out", ".hexpatch/export/mine")
