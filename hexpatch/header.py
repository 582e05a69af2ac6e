"""Mail headers and messages of patches: read as `git am --keep-non-patch` does, and written."""

from __future__ import annotations

import base64
import re
from typing import NamedTuple

from hexpatch import mailbody, maildate
from hexpatch.errors import HexpatchError
from hexpatch.mailfield import (
    clean_subject,
    plain_author,
    plain_subject,
    split_author,
    text_of,
    unfold,
    written_author,
    written_subject,
)

SEPARATOR = b"From " + b"0" * 40 + b" Mon Sep 17 00:00:00 2001\n"
_BREAK = re.compile(rb"^(?:diff -|Index: |---(?: [^ \t\r\n]|[ \t\r]*\n))", re.MULTILINE)
_SIGNATURE = re.compile(rb"(?:\A|(?<=\n))-- \n(?:(?!-- \n).*\n?)*\Z")
_INBODY = re.compile(r"(from|subject|date):[ \t]*", re.IGNORECASE)
_FROM_LINE = re.compile(r"From .*:\d\d")
_DANGER = re.compile(
    r">*(?:diff -|Index: |---(?: [^ \t\r]|[ \t\r]*\Z)|From .*:\d\d|\[PATCH\](?:[ \t\r]|\Z)"
    r"|(?:from|subject|date):|<{7} )",
    re.IGNORECASE,
)
# a merge of the file that git could not finish; lines of a hunk have a sign before them
CONFLICT = re.compile(rb"^<{7} .*\n(?:.*\n)*?={7}\r?\n(?:.*\n)*?>{7} ", re.MULTILINE)
_BLANKS = " \t\n\r"


class Mail(NamedTuple):
    """What a mail says before its diff.

    `data` from `rest` on is what follows the message; `before` lines of the file came before
    `data`, which is the file itself or its decoded body.
    """

    name: str
    email: str
    date: str
    subject: str
    body: str
    glued: bool
    data: bytes
    rest: int
    before: int


def parse_mail(data: bytes, name: str, scissors: bool = False) -> Mail:
    """Split a mail into author, date, message and rest. A file that is no mail is an error."""
    if not data:
        raise HexpatchError(f"{name}: empty file")
    if data.startswith(b"\xef\xbb\xbf"):
        data = data[3:]
    first = re.search(rb"\S", data)
    if first is None:
        raise HexpatchError(f"{name}: no diff found (the file is blank)")
    if data.find(b"\r\n", first.start()) + 1 == data.find(b"\n", first.start()) > 0:
        data = data.replace(b"\r\n", b"\n")
        first = re.search(rb"\S", data)
        assert first is not None
    fields, at = mailbody.fields_of(data, first.start())
    if b"from" not in fields:
        if mailbody.DIFF.search(data):
            raise HexpatchError(
                f"{name}: no mail header",
                "the file needs From:, Date: and Subject: lines; `git format-patch` writes them",
            )
        raise HexpatchError(f"{name}: no diff found")
    charset = mailbody.charset_of(fields)
    decoded = mailbody.decoded(data, at, fields, name)
    before = 0
    if decoded is not None:
        before = data.count(b"\n", 0, at)
        data, at = decoded.data, 0
    match = _break(data, at, scissors)
    rest = match.start() if match else len(data)
    text = data[at:rest]
    if match is None:
        text = _SIGNATURE.sub(b"", text)
    message = text_of(text, decoded.charset if decoded else charset)
    inner: dict[str, str] = {}
    if b"x-hexpatch-quoted" in fields:
        body = "\n".join(_unquoted(line) for line in message[:-1].split("\n"))
    else:
        body, inner = _message(message, scissors)
    if match is None:
        inner = {}  # git: only a mail with a patch has headers in its body
    author = _author(inner.get("from"), fields, charset, name)
    date = _date(inner.get("date"), fields, name)
    subject = _subject(inner.get("subject"), fields, charset, name)
    if "\0" in f"{author[0]}{author[1]}{subject}{body}":
        raise HexpatchError(
            f"{name}: a NUL byte in the message, which no commit can have", "take it out there"
        )
    glued = b"x-hexpatch-glued" in fields
    return Mail(*author, date, subject, body, glued, data, rest, before)


def _break(data: bytes, at: int, scissors: bool) -> re.Match[bytes] | None:
    """Where the message ends. A line of scissors may begin with the same three dashes."""
    for found in _BREAK.finditer(data, at):
        line = data[found.start() : data.find(b"\n", found.start())]
        if not scissors or not is_scissors(line.decode("latin-1")):
            return found
    return None


# -- text -----------------------------------------------------------------------------------


def stripspace(text: str) -> str:
    """As `git stripspace`: no blanks at line ends, no blank lines doubled or at either end."""
    lines: list[str] = []
    for line in text.split("\n"):
        kept = line.rstrip(_BLANKS)
        if kept or (lines and lines[-1]):
            lines.append(kept)
    return "\n".join(lines).rstrip("\n")


def _message(text: str, scissors: bool) -> tuple[str, dict[str, str]]:
    """The body, and the From, Date and Subject that stand at its top."""
    kept: list[str] = []
    inner: dict[str, str] = {}
    key = ""
    top = True
    for line in text.split("\n"):
        if top and not line:
            top = not inner
            continue
        cut = scissors and is_scissors(line)
        if top and not cut:
            if key and line[0] in " \t":
                inner[key] += line
                continue
            match = _INBODY.match(line)
            if match and match[1].lower() not in inner:
                key = match[1].lower()
                inner[key] = line[match.end() :]
                continue
            if re.match(r"\[PATCH\][ \t\r]", line):
                inner["subject"], key = line, ""
                continue
            if re.match(r">From [0-9a-f]{40} Mon Sep 17 00:00:00 2001", line):
                key = ""
                continue
        top = False
        if cut:
            kept, inner, key, top = [], {}, "", True
            continue
        kept.append(line)
    return stripspace("\n".join(kept)), inner


def is_scissors(line: str) -> bool:
    """Git's rule for `-- >8 --`: mostly dashes and scissors, at least eight characters."""
    marks = gap = perforation = at = 0
    inside = False
    while at < len(line):
        if line[at] in _BLANKS:
            perforation += inside
            gap += inside
        elif line[at] == "-":
            inside = True
            perforation += 1
        elif line[at : at + 2] in (">8", "8<", ">%", "%<"):
            inside = True
            perforation += 2
            marks += 2
            at += 1
        else:
            inside = False
        at += 1
    visible = len(line.strip(_BLANKS))
    return marks > 0 and 8 <= visible < perforation * 3 and gap * 2 < perforation


# -- fields ---------------------------------------------------------------------------------


def _author(
    inner: str | None, fields: dict[bytes, bytes], charset: str, name: str
) -> tuple[str, str]:
    text = unfold(fields[b"from"], charset) if inner is None else unfold(inner.encode(), "")
    author = split_author(text)
    if author is None:
        raise HexpatchError(f"{name}: the From header has no address: {text!r}")
    exact = _exact(fields, b"x-hexpatch-from") if inner is None else None
    if exact is not None:
        person, _, email = exact.rpartition(" <")
        if plain_author(person, email[:-1]) == author:
            return person, email[:-1]
    return author


def _date(inner: str | None, fields: dict[bytes, bytes], name: str) -> str:
    text = inner
    if text is None:
        if b"date" not in fields:
            raise HexpatchError(f"{name}: no Date header")
        text = text_of(fields[b"date"], "")
    date = maildate.parse_date(text)
    if date is None:
        raise HexpatchError(f"{name}: unreadable date: {text!r}")
    exact = _exact(fields, b"x-hexpatch-date") if inner is None else None
    if exact is not None and maildate.parse_date(maildate.mail_date(exact)) == date:
        return exact
    return date


def _subject(inner: str | None, fields: dict[bytes, bytes], charset: str, name: str) -> str:
    if inner is not None:
        return clean_subject(unfold(inner.encode(), ""))
    if b"subject" not in fields:
        raise HexpatchError(f"{name}: no Subject header")
    subject = clean_subject(unfold(fields[b"subject"], charset))
    exact = _exact(fields, b"x-hexpatch-subject")
    return exact if exact is not None and plain_subject(exact) == subject else subject


def _exact(fields: dict[bytes, bytes], key: bytes) -> str | None:
    """A value that the plain header can't carry. Obeyed only while the plain one still fits it."""
    if key not in fields:
        return None
    try:
        return base64.b64decode(fields[key].replace(b" ", b""), validate=True).decode()
    except ValueError:
        return None


# -- writing --------------------------------------------------------------------------------


def render_mail(
    author: tuple[str, str], date: str, subject: str, body: str, glued: bool
) -> tuple[str, ...]:
    """The lines of a mail up to `---`, in git's form.

    What this form can't carry is said again in headers that `git am` ignores:
    `X-Hexpatch-From/-Date/-Subject` (base64 of the exact value), `X-Hexpatch-Glued` (the body
    follows the title without a blank line) and `X-Hexpatch-Quoted` (the body is verbatim, and
    lines that end a message or count as headers have a `>` before them).
    """
    name, email = author
    fields = [("From", written_author(name, email)[0]), ("Date", maildate.mail_date(date))]
    fields.append(("Subject", written_subject(subject)))
    if not f"{name}{email}{subject}{body}".isascii():
        fields.append(("MIME-Version", "1.0"))
        fields.append(("Content-Type", "text/plain; charset=UTF-8"))
        fields.append(("Content-Transfer-Encoding", "8bit"))
    if plain_author(name, email) != author:
        fields.append(("X-Hexpatch-From", _packed(f"{name} <{email}>")))
    if maildate.parse_date(maildate.mail_date(date)) != date:
        fields.append(("X-Hexpatch-Date", _packed(date)))
    if plain_subject(subject) != subject:
        fields.append(("X-Hexpatch-Subject", _packed(subject)))
    if glued:
        fields.append(("X-Hexpatch-Glued", "1"))
    lines = body.split("\n") if body else []
    if _must_quote(body, lines):
        fields.append(("X-Hexpatch-Quoted", "1"))
        lines = [f">{line}" if _DANGER.match(line) else line for line in lines]
    return (*(f"{key}: {value}" for key, value in fields), "", *lines, "---")


def _must_quote(body: str, lines: list[str]) -> bool:
    if not body:
        return False
    if stripspace(body) != body or any(map(is_scissors, lines)):
        return True
    if _DANGER.match(lines[0]) or lines[0].startswith(">From "):
        return True
    raw = body.encode("utf-8", "replace") + b"\n"
    if _BREAK.search(raw) or CONFLICT.search(raw):
        return True
    return any(map(_FROM_LINE.match, lines))


def _unquoted(line: str) -> str:
    return line[1:] if line.startswith(">") and _DANGER.match(line) else line


def _packed(text: str) -> str:
    packed = base64.b64encode(text.encode()).decode()
    return "\n ".join(packed[at : at + 72] for at in range(0, len(packed), 72))
