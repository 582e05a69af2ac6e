"""Answers about the series and the stack, as plain values: listing, status, check."""

from __future__ import annotations

from typing import Any

from hexpatch import lockfile, stack, workspace
from hexpatch.errors import HexpatchError
from hexpatch.objects import LINK
from hexpatch.patchfile import FileDiff, parse_patch
from hexpatch.pick import Laid, text
from hexpatch.place import hunk_name, stated
from hexpatch.series import Patch, Series
from hexpatch.session import Session
from hexpatch.stack import DoesNotApply, Failed
from hexpatch.tree import Tree
from hexpatch.walk import Row


def listing(series: Series) -> dict[str, Any]:
    """Every patch with its title, files and line counts."""
    return {
        "base": {"name": series.base.name},
        "patches": [_entry(series, p) for p in series.patches],
    }


def _entry(series: Series, patch: Patch) -> dict[str, Any]:
    parsed = parse_patch((series.root / "patches" / patch.file).read_bytes(), patch.file)
    files = [_shape(d) for d in parsed.diffs]
    added = sum(d.added for d in parsed.diffs)
    for file in patch.files:
        lines = (series.root / file).read_bytes().count(b"\n")
        added += lines
        files.append(
            {"path": series.upstream_path(file), "kind": "add", "added": lines, "removed": 0}
        )
    group = next((g.name for g in series.groups if patch.name in g.patches), None)
    return {
        "name": patch.name,
        "title": parsed.subject,
        "author": parsed.author,
        "date": parsed.author_date,
        "state": "landed" if patch.landed else patch.state,
        "group": group,
        "files": files,
        "added": added,
        "removed": sum(d.removed for d in parsed.diffs),
        "shapes": [_said(f) for f in files if _said(f)],
    }


def _shape(diff: FileDiff) -> dict[str, Any]:
    out: dict[str, Any] = {
        "path": text(diff.path),
        "kind": diff.kind,
        "added": diff.added,
        "removed": diff.removed,
    }
    if diff.kind in ("rename", "copy") and diff.old_path:
        out["from"] = text(diff.old_path)
    if diff.binary is not None or diff.binary_missing:
        out["binary"] = True
        if diff.binary and diff.kind != "delete" and diff.binary[0].method == "literal":
            out["size"] = diff.binary[0].size
    if diff.new_mode and (diff.old_mode not in (None, diff.new_mode) or diff.new_mode == LINK):
        out["mode"] = f"{diff.new_mode:o}"
    return out


def _said(shape: dict[str, Any]) -> str:
    """A file change that line counts do not tell: binary, renamed, mode; else nothing."""
    notes = []
    if shape.get("binary"):
        size = f", {shape['size']} bytes" if "size" in shape else ""
        notes.append(f"{shape['kind']} (binary{size})")
    elif shape["kind"] in ("rename", "copy"):
        notes.append(f"{shape['kind']} of {shape['from']}")
    if "mode" in shape:
        notes.append(f"mode {shape['mode']}")
    if not shape["added"] and not shape["removed"] and not notes:
        notes.append(f"{shape['kind']}, 0 lines")
    return f"{shape['path']}: {', '.join(notes)}" if notes else ""


def status(session: Session) -> dict[str, Any]:
    """Where the stack is, and what to do about it."""
    base = session.base
    out: dict[str, Any] = {
        "base": {"name": session.series.base.name, "commit": base.commit, "tree": base.tree},
        "tip": "",
        "tree": "",
        "checkout": str(session.ws.checkout) if session.checkout.exists else None,
        "waiting": None,
    }
    session.store.keep = False
    failed = None
    try:
        made = session.stack
        out["tip"], out["tree"] = made.tip, made.tree
    except DoesNotApply as error:
        failed = error
    pending = workspace.read_json(session.ws.pending)
    if pending is not None:
        out["waiting"] = {"patch": pending["current"], "conflicts": pending["conflicts"]}
    out["sync"], out["hint"] = _sync(session, out["tip"], failed, pending)
    out["patches"] = [_entry(session.series, p) for p in session.series.patches]
    commits = {} if failed else {a.name: a for a in session.stack.patches}
    for entry in out["patches"]:
        applied = commits.get(entry["name"])
        entry["commit"] = applied.commit if applied else None
        entry["tree"] = applied.tree if applied else None
    return out


def _sync(
    session: Session, tip: str, failed: HexpatchError | None, pending: dict[str, Any] | None
) -> tuple[str, str]:
    if pending is not None:
        return (
            f"rebase waits: {pending['current']}",
            "`hexpatch rebase --continue`, `--skip` or `--abort`",
        )
    if failed is not None:
        return failed.message, failed.hint or ""
    applied = session.applied_tip()
    if applied is None:
        return "not applied yet", "`hexpatch apply`"
    if session.commits_changed():
        also = "" if applied == tip else ", and the files have changed too"
        return f"commits have changed{also}", "`hexpatch refresh` writes them to patches/"
    if applied != tip:
        return "files have changed", "`hexpatch apply` puts them into the checkout"
    if session.checkout.exists and session.checkout.dirty():
        return "in sync, with uncommitted changes", "commit them and run `hexpatch refresh`"
    return "in sync", ""


def check(session: Session, onto: str | None, *, fresh: bool = False) -> tuple[str, list[Row]]:
    """A row for every patch, on the base or on another commit. No object is written.

    On the base, a series.lock that fits every file byte for byte has the answer already, for
    `apply` placed these very bytes there; `fresh` places them again.
    """
    session.store.keep = False
    if onto is not None:
        from hexpatch import rebase  # the moving half of the tool: not for a plain check

        found = session.upstream.resolve(onto)
        return found.name, rebase.plan(session, found)
    name = session.series.base.name
    known = None if fresh else _locked(session.series)
    return name, known if known is not None else _placed(session)


def _locked(series: Series) -> list[Row] | None:
    """The rows that series.lock vouches for; None if anything differs from what it was made of."""
    try:
        lock = lockfile.read(series.root)
    except HexpatchError:
        return None
    active = [p.name for p in series.active]
    if lock is None or [p.name for p in lock.patches] != active:
        return None
    same_base = series.base.tree is not None and lock.base.tree == series.base.tree
    if not same_base or lockfile.changed(lock, series, lambda p: (series.root / p).read_bytes()):
        return None
    moved = {p.name: p.placed for p in lock.patches}
    rows = []
    for patch in series.patches:
        if patch.name not in moved:
            rows.append(Row(patch.name, "hold" if patch.state == "hold" else "landed"))
            continue
        detail = tuple(f"{hunk} sits at line {line}" for _, hunk, line in moved[patch.name][:5])
        rows.append(Row(patch.name, "offset" if detail else "ok", detail))
    return rows


def _placed(session: Session) -> list[Row]:
    base = session.base
    tree = Tree(session.store, base.tree)
    laid = {(r.name): r for r in stack.lay_all(tree, stack.sources(session.series))}
    rows = []
    for patch in session.series.patches:
        result = laid.get(patch.name)
        if result is None:
            rows.append(Row(patch.name, "hold" if patch.state == "hold" else "landed"))
        else:
            rows.append(_row(result))
    return rows


def _row(result: Laid | Failed) -> Row:
    if isinstance(result, Failed):
        detail = tuple(c.line for c in result.conflicts)
        word = "blocked" if result.blocked_by else "conflict"
        return Row(result.name, word, detail, result.blocked_by)
    moved = [(p, h) for c in result.changes for p, h in c.hunks if p != stated(h)]
    if not moved:
        return Row(result.name, "ok")
    detail = tuple(f"{hunk_name(h)} sits at line {p + 1}" for p, h in moved[:5])
    return Row(result.name, "offset", detail)
