"""Mailboxes: split, put in order, cover letters set aside. All mails of a series or none."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from hexpatch import header, plaindiff
from hexpatch.errors import HexpatchError
from hexpatch.patchfile import (
    PatchFile,
    PathRule,
    map_paths,
    parse_diff,
    parse_patch,
    parse_patch_headers,
)

# git mailsplit's rule: a From line with a time at the end starts a mail
_FROM = re.compile(rb"From [^\n]*\d\d:\d\d(:\d\d)?[^\n]*\d{4}\r?$", re.MULTILINE)
_RULE = re.compile(rb"\A---[ \t\r]*(?:\n|\Z)")
_SIGNATURE = re.compile(rb"-- ?\r?(?:\n|\Z)")
_COUNT = re.compile(
    r"\[[^\]]*\bPATCH\b[^\]]*?(?:\bv(?P<v>\d+)\b[^\]]*?)?(?P<n>\d+)/(?P<m>\d+)\]", re.I
)
_VERSION = re.compile(r"\[[^\]]*?(?:\bv|PATCHv)(?P<v>\d+)\b[^\]]*\]", re.I)


class Mail(NamedTuple):
    """One mail: its place in the series (n of m, version) as the subject says, and its bytes.

    `place` is where it stands, for messages.
    """

    number: int | None
    total: int | None
    version: int
    title: str
    raw: bytes
    place: str = ""

    def parse(self, rules: Sequence[PathRule] = ()) -> PatchFile:
        """The patch, its paths by `rules`; without its diff's bytes: a mailbox may be large."""
        parsed = parse_patch(self.raw, self.place, scissors=True, bare=not rules)
        if not parsed.diffs:
            _not_lost(self.raw, self.place)
        if not parsed.diffs and not parse_patch_headers(self.raw, self.place).subject:
            raise HexpatchError(f"{self.place}: no diff found")
        if not parsed.subject:
            raise HexpatchError(
                f"{self.place}: its Subject: is empty; a patch needs a title",
                "write one there, and import it again",
            )
        if parsed.author_date.startswith("-"):
            raise HexpatchError(
                f"{self.place}: its Date: is before 1970, which no sound commit can have",
                "write another one there, and import it again",
            )
        if rules:
            diff = map_paths(parsed.diff, rules, self.place)
            return parsed._replace(diffs=parse_diff(diff, self.place), diff=b"")
        return parsed


def split_mbox(data: bytes, name: str) -> list[bytes]:
    """The mails of a mailbox; a file that does not start with such a From line is one mail."""
    if not data:
        raise HexpatchError(f"{name}: empty file")
    if _FROM.match(data) is None:
        return [data]
    starts = [0]
    at = data.find(b"\nFrom ") + 1
    while at:
        after_blank = data[at - 2 : at - 1] == b"\n" or data[at - 3 : at - 1] == b"\n\r"
        if after_blank and _FROM.match(data, at):
            starts.append(at)
        at = data.find(b"\nFrom ", at) + 1
    return [data[one:two] for one, two in pairwise([*starts, len(data)])]


def _subject(raw: bytes) -> str:
    """The raw Subject header, unfolded: its brackets tell n/m before they are stripped."""
    gap = re.search(rb"\n\r?\n", raw)
    head = raw[: gap.start() if gap else len(raw)].replace(b"\r\n", b"\n")
    found = re.search(rb"(?im)^Subject:[ \t]*(.*(?:\n[ \t].*)*)", head)
    return found[1].replace(b"\n", b"").decode("utf-8", "replace") if found else ""


def _mail(raw: bytes) -> Mail:
    subject = _subject(raw)
    count = _COUNT.search(subject)
    version = _VERSION.search(subject)
    title = re.sub(r"^(?:\s*(?:Re:|\[[^\]]*\]))*\s*", "", subject, flags=re.I)
    return Mail(
        int(count["n"]) if count else None,
        int(count["m"]) if count else None,
        int(version["v"]) if version else 1,
        title,
        raw,
    )


def read_series(data: bytes, name: str) -> tuple[list[Mail], list[str]]:
    """The mails of a mailbox in order, and notes about what was set aside.

    A cover letter (0/m) is skipped and named. Mails numbered n/m are sorted; a missing or double
    number, or two versions of a series, refuses the whole file.
    """
    mails = [_mail(raw) for raw in split_mbox(data, name)]
    notes = [f"skipped cover letter: {m.title}" for m in mails if m.number == 0]
    rest = [m for m in mails if m.number != 0]
    if len(mails) > 1:
        rest = _ordered(rest, name, notes)
    many = len(mails) > 1
    placed = [m._replace(place=f"{name}: {m.title}" if many and m.title else name) for m in rest]
    return placed, notes


def _ordered(mails: list[Mail], name: str, notes: list[str]) -> list[Mail]:
    numbered = [m for m in mails if m.number is not None]
    if len(numbered) != len(mails) or not numbered:
        return mails
    totals = {(m.version, m.total) for m in numbered}
    if len(totals) > 1:
        said = ", ".join(f"v{v} of {t}" for v, t in sorted(totals, key=str))
        raise HexpatchError(
            f"{name}: mails of different series ({said})", "import one version at a time"
        )
    total = numbered[0].total or 0
    numbers = [m.number for m in numbered]
    for wanted in range(1, total + 1):
        if wanted not in numbers:
            raise HexpatchError(f"{name}: {wanted}/{total} is missing", "nothing was imported")
        if numbers.count(wanted) > 1:
            raise HexpatchError(f"{name}: {wanted}/{total} is there twice", "nothing was imported")
    ordered = sorted(numbered, key=lambda m: m.number or 0)
    if ordered != numbered:
        notes.append("the mails were out of order; sorted by their numbers")
    return ordered


_AGAIN = (
    "get the mail again as it was sent; for a patch that is empty on purpose: "
    "`hexpatch new NAME --allow-empty -m TITLE`"
)


def _not_lost(raw: bytes, place: str) -> None:
    """A mail without a diff is a marker on purpose, or one that lost its diff on the way."""
    letter = header.parse_mail(raw, place, scissors=True)
    data = letter.data
    if b"\x1b[" in data and b"diff --git" in data:
        raise HexpatchError(f"{place}: the diff is coloured", "make it again with --no-color")
    if re.search(rb"(?m)^ \d+ files? changed(?:, |\r?$)", data):
        raise HexpatchError(f"{place}: it has a diffstat, but no diff", "export the patch again")
    plaindiff.find(data, 0, letter.rest, place, letter.before)
    lost = plaindiff.QUOTED_DIFF.search(data)
    after = _RULE.sub(b"", data[letter.rest :]).lstrip()
    if lost is None and (not after or _SIGNATURE.match(after)):
        return
    what, said = after.split(b"\n")[0], "after the message is no diff"
    at = len(data) - len(after)
    if lost:
        what, said, at = lost[0], "is quoted or damaged", lost.start()
    number = letter.before + data.count(b"\n", 0, at) + 1
    shown = what.strip().decode("utf-8", "replace")
    raise HexpatchError(f"{place}: line {number}: `{shown}` {said}", _AGAIN)
