"""Bodies of mails: parts joined and transfer encodings undone, as `git mailinfo` does."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from typing import NamedTuple

from hexpatch.errors import HexpatchError

Fields = dict[bytes, bytes]

DIFF = re.compile(rb"^(?:diff --git |--- .*\n\+\+\+ |@@ -\d)", re.MULTILINE)
_HEADER = re.compile(rb"(?:>?From |[!-9;-~]*:)")
_CHARSET = re.compile(rb"charset\s*=\s*\"?([^\s\";]+)", re.IGNORECASE)
_BOUNDARY = re.compile(rb"boundary\s*=\s*(?:\"([^\"]+)\"|([^\s\";]+))", re.IGNORECASE)
_FLOWED = re.compile(rb"format\s*=\s*\"?flowed", re.IGNORECASE)
_DELSP = re.compile(rb"delsp\s*=\s*\"?yes", re.IGNORECASE)
_ALPHABET = re.compile(rb"[A-Za-z0-9+/]+={0,2}")
_OWN_MAIL = re.compile(rb"\s*From [0-9a-f]{40,64} Mon Sep 17 00:00:00 2001\r?\n")
_BY_GIT = "`git am` it in your clone, then `hexpatch import BASE..BRANCH`"


class Body(NamedTuple):
    """Text of a mail as its sender saw it, and the charset it is said to have."""

    data: bytes
    charset: str


def fields_of(data: bytes, at: int) -> tuple[Fields, int]:
    """Header fields by lower-case name, and where the body begins."""
    fields: Fields = {}
    key = b""
    while at < len(data):
        end = data.find(b"\n", at)
        end = len(data) if end < 0 else end
        line = data[at:end].rstrip()
        if not line:
            return fields, min(end + 1, len(data))
        if line[:1] in b" \t" and key:
            fields[key] += b" " + line[1:]
        elif _HEADER.match(line):
            key, _, value = line.partition(b":")
            key = key.lower()
            fields[key] = value.strip()
        else:
            return fields, at
        at = end + 1
    return fields, len(data)


def charset_of(fields: Fields) -> str:
    """What the header says of the text's bytes."""
    found = _CHARSET.search(fields.get(b"content-type", b""))
    return found[1].decode("ascii", "replace") if found else ""


def decoded(data: bytes, at: int, fields: Fields, name: str) -> Body | None:
    """The body from `at` on without parts and encodings. None where it stands as it is."""
    kind = _kind(fields)
    if kind.startswith(b"multipart/"):
        parts = list(_texts(data[at:], fields, name))
        if not parts:
            raise HexpatchError(f"{name}: a mail with attachments, and no text in it", _BY_GIT)
        whole = b"".join(p.data if p.data.endswith(b"\n") else p.data + b"\n" for p in parts)
        return Body(whole, parts[0].charset)
    coded = fields.get(b"content-transfer-encoding", b"").lower()
    flowed = _FLOWED.search(fields.get(b"content-type", b""))
    text = None
    if flowed or coded in (b"base64", b"quoted-printable"):
        text = _plain(data[at:], fields, name)
    if kind == b"text/html" and not DIFF.search(data if text is None else text):
        raise HexpatchError(
            f"{name}: an HTML mail, no diff can be read from it",
            "get the patch as plain text, or as an attachment",
        )
    return None if text is None else Body(text, charset_of(fields))


def _kind(fields: Fields) -> bytes:
    return fields.get(b"content-type", b"text/plain").partition(b";")[0].strip().lower()


# -- parts ----------------------------------------------------------------------------------


def _texts(body: bytes, fields: Fields, name: str) -> Iterator[Body]:
    """The texts among the parts of a body. HTML, signatures and pictures are left out."""
    found = _BOUNDARY.search(fields[b"content-type"])
    if found is None:
        raise HexpatchError(f"{name}: a mail with attachments, but no boundary", _BY_GIT)
    for part in _parts(body, found[1] or found[2]):
        inner, at = fields_of(part, 0)
        kind = _kind(inner)
        if kind.startswith(b"multipart/"):
            yield from _texts(part[at:], inner, name)
        elif kind.startswith(b"message/"):
            raise HexpatchError(
                f"{name}: the patch is in a mail that is attached",
                "save the attached mail as a file, and import that",
            )
        elif kind != b"text/html" and kind.startswith((b"text/", b"application/")):
            text = _plain(part[at:], inner, name)
            if kind.startswith(b"application/") and not DIFF.search(text):
                continue
            if _OWN_MAIL.match(text):
                raise HexpatchError(
                    f"{name}: its attachment is a mail of its own",
                    "save the attachment as a file, and import that",
                )
            yield Body(text, charset_of(inner))


def _parts(body: bytes, boundary: bytes) -> Iterator[bytes]:
    """What stands between the boundary lines; each with its header."""
    mark = re.compile(rb"^--" + re.escape(boundary) + rb"(--)?[ \t\r]*(?:\n|\Z)", re.MULTILINE)
    start = None
    for line in mark.finditer(body):
        if start is not None:
            yield body[start : line.start()]
        start = line.end()
        if line[1]:
            return
    if start is not None:
        yield body[start:]


# -- encodings ------------------------------------------------------------------------------


def _plain(body: bytes, fields: Fields, name: str) -> bytes:
    """A text as it was sent. CRLF at the end of every line is the transport's, as in a mailbox."""
    coded = fields.get(b"content-transfer-encoding", b"").lower()
    if coded == b"quoted-printable":
        body = binascii.a2b_qp(body)
    elif coded == b"base64":
        body = _base64(body, name)
    if body.count(b"\r\n") == body.count(b"\n"):
        body = body.replace(b"\r\n", b"\n")
    kind = fields.get(b"content-type", b"")
    return _unflowed(body, bool(_DELSP.search(kind))) if _FLOWED.search(kind) else body


def _base64(body: bytes, name: str) -> bytes:
    """The data; a mailing list may have put its footer behind it."""
    lines = [line.strip() for line in body.split(b"\n")]
    lines = lines[next((n for n, line in enumerate(lines) if line), 0) :]
    stop = next((n for n, x in enumerate(lines) if not _ALPHABET.fullmatch(x)), len(lines))
    padded = next((n + 1 for n, x in enumerate(lines[:stop]) if x.endswith(b"=")), stop)
    coded, rest = lines[:padded], lines[padded:]
    goes_on = any(
        _ALPHABET.fullmatch(x) and (len(x) >= 60 or (x.endswith(b"=") and len(x) % 4 == 0))
        for x in rest
    )
    try:
        if goes_on or (not coded and any(rest)):
            raise ValueError
        return base64.b64decode(b"".join(coded), validate=True)
    except ValueError:
        raise HexpatchError(f"{name}: the base64 text is damaged") from None


def _unflowed(body: bytes, delsp: bool) -> bytes:
    """Text that is `format=flowed`: stuffed blanks taken away, soft line breaks joined.

    A diff that was not stuffed, whatever the header says, is left alone.
    """
    diff = DIFF.search(body)
    if diff and re.search(rb"^ [^ \r\n>F]", body[diff.start() :], re.MULTILINE):
        return body
    out: list[bytes] = []
    soft = b""
    for line in re.findall(rb"[^\n]*\n|[^\n]+", body):
        text = line.rstrip(b"\r\n")
        if text == b"-- ":
            out += [soft, line]
            soft = b""
            continue
        stuffed = text.startswith(b" ")
        if len(text) > stuffed and text.endswith(b" "):
            soft += text[stuffed : -1 if delsp else None]
            continue
        out.append(soft + line[stuffed:])
        soft = b""
    return b"".join(out) + soft
