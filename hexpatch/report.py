"""Answers about the series and the stack, as plain values: listing and status."""

from __future__ import annotations

from typing import Any

from hexpatch import workspace
from hexpatch.errors import HexpatchError, MissingObject
from hexpatch.objects import LINK
from hexpatch.patchfile import FileDiff, merged, parse_patch
from hexpatch.pick import text
from hexpatch.series import Patch, Series
from hexpatch.session import Session
from hexpatch.stack import DoesNotApply


def listing(series: Series) -> dict[str, Any]:
    """Every patch with its title, files and line counts."""
    return {
        "base": {"name": series.base.name},
        "patches": [_entry(series, p) for p in series.patches],
    }


def _entry(series: Series, patch: Patch) -> dict[str, Any]:
    name = f"patches/{patch.file}"
    parsed = parse_patch(merged(series.read(name), name), name)
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
        "state": patch.out or patch.state,
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
    pending = workspace.read_pending(session.ws)
    if pending is not None:
        out["waiting"] = {"patch": pending["current"], "conflicts": pending["conflicts"]}
    try:
        out["sync"], out["hint"] = _sync(session, out["tip"], failed, pending)
    except MissingObject as error:
        out["sync"], out["hint"] = error.message, error.hint or ""
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
    session.whole()
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
    here = session.repo.ref(workspace.BASE)
    if here is not None and here != session.base.commit:
        also = ", with commits of its own" if session.commits_changed() else ""
        force = " --force" if also else ""
        return (
            f"the checkout is on {session.upstream.describe(here)} (not the pinned base){also}",
            f"`hexpatch apply{force}` puts the stack on {session.series.base.name} again",
        )
    if session.checkout.exists:
        try:
            session.idle()
            session.on_stack()
        except HexpatchError as error:
            return error.message, error.hint or ""
    if session.commits_changed():
        also = "" if applied == tip else ", and the files have changed too"
        return f"commits have changed{also}", "`hexpatch refresh` writes them to patches/"
    if applied != tip:
        return "files have changed", "`hexpatch apply` puts them into the checkout"
    if not session.checkout.exists:
        return "applied, but the checkout is gone", "`hexpatch apply`"
    if session.checkout.dirty():
        return "in sync, with uncommitted changes", "commit them and run `hexpatch refresh`"
    return "in sync", ""
