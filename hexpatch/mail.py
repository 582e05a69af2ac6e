"""Mailboxes: split, put in order, cover letters set aside. All mails of a series or none."""

from __future__ import annotations

import re
from dataclasses import dataclass

from hexpatch.errors import HexpatchError
from hexpatch.patchfile import PatchFile, parse_patch, parse_patch_headers

# git mailsplit's rule: a From line with a time at the end starts a mail
_FROM = re.compile(rb"^From [^\n]*\d\d:\d\d(:\d\d)?[^\n]*\d{4}\r?$")
_COUNT = re.compile(
    r"\[[^\]]*\bPATCH\b[^\]]*?(?:\bv(?P<v>\d+)\b[^\]]*?)?(?P<n>\d+)/(?P<m>\d+)\]", re.I
)
_VERSION = re.compile(r"\[[^\]]*?(?:\bv|PATCHv)(?P<v>\d+)\b[^\]]*\]", re.I)


@dataclass(frozen=True)
class Mail:
    """One mail: its place in the series (n of m, version) as the subject says, and its bytes."""

    number: int | None
    total: int | None
    version: int
    title: str
    raw: bytes


def split_mbox(data: bytes, name: str) -> list[bytes]:
    """The mails of a mailbox; a file that does not start with a From line is one mail."""
    if not data:
        raise HexpatchError(f"{name}: empty file")
    if not data.startswith(b"From "):
        return [data]
    mails: list[list[bytes]] = []
    blank = True
    for line in data.split(b"\n"):
        if blank and line.startswith(b"From ") and _FROM.match(line):
            mails.append([])
        mails[-1].append(line)
        blank = line in (b"", b"\r")
    return [
        b"\n".join(lines) + b"\n" if m + 1 < len(mails) else b"\n".join(lines)
        for m, lines in enumerate(mails)
    ]


def _subject(raw: bytes) -> str:
    """The raw Subject header, unfolded: its brackets tell n/m before they are stripped."""
    head = raw.replace(b"\r\n", b"\n").split(b"\n\n", 1)[0]
    found = re.search(rb"(?im)^Subject:[ \t]*(.*(?:\n[ \t].*)*)", head)
    return found[1].replace(b"\n", b"").decode("utf-8", "replace") if found else ""


def _mail(raw: bytes, name: str) -> Mail:
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


def read_series(data: bytes, name: str) -> tuple[tuple[PatchFile, ...], tuple[str, ...]]:
    """The patches of a mailbox in order, and notes about what was set aside.

    A cover letter (0/m) is skipped and named. Mails numbered n/m are sorted; a missing or double
    number, or two versions of a series, refuses the whole file.
    """
    mails = [_mail(raw, name) for raw in split_mbox(data, name)]
    notes = [f"skipped cover letter: {m.title}" for m in mails if m.number == 0]
    rest = [m for m in mails if m.number != 0]
    if len(mails) > 1:
        rest = _ordered(rest, name, notes)
    return tuple(_parse(m, name, len(mails) > 1) for m in rest), tuple(notes)


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


def _parse(mail: Mail, name: str, many: bool) -> PatchFile:
    place = f"{name}: {mail.title}" if many and mail.title else name
    parsed = parse_patch(mail.raw, place, scissors=True)
    if not parsed.diffs:
        _not_lost(mail.raw, place)
    if not parsed.diffs and not parse_patch_headers(mail.raw, place).subject:
        raise HexpatchError(f"{place}: no diff found")
    return parsed


def _not_lost(raw: bytes, place: str) -> None:
    """A mail without a diff is a marker on purpose, or one that lost its diff on the way."""
    if b"\x1b[" in raw and b"diff --git" in raw:
        raise HexpatchError(f"{place}: the diff is coloured", "make it again with --no-color")
    if re.search(rb"(?m)^ \d+ files? changed(?:, |\r?$)", raw):
        raise HexpatchError(f"{place}: it has a diffstat, but no diff", "export the patch again")
