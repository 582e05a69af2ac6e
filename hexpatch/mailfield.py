"""Header fields of mails: encoded words, subjects and authors, read and written as git does."""

from __future__ import annotations

import base64
import binascii
import re

_WORD = re.compile(rb"=\?([^?]+)\?([bBqQ])\?(.*?)\?=", re.DOTALL)
_SPECIAL = re.compile(r'[()<>\[\]:;@,."\\]')
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_BLANKS = " \t\n\r"


def text_of(raw: bytes, charset: str) -> str:
    """Bytes as text: by the declared charset, else UTF-8, else (line by line) Latin-1."""
    if charset and charset.lower() not in ("utf-8", "utf8", "us-ascii"):
        try:
            return raw.decode(charset)
        except (LookupError, ValueError):
            pass
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return "\n".join(map(_line, raw.split(b"\n")))


def _line(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def unfold(value: bytes, charset: str) -> str:
    """A header's text, its encoded words decoded. Adjacent ones are joined without the blanks."""
    if b"=?" not in value:
        return text_of(value, charset)
    parts: list[tuple[bytes, str]] = []
    at = 0
    for word in _WORD.finditer(value):
        between = value[at : word.start()]
        if at == 0 or between.strip():
            parts.append((between, charset))
        code = word[1].split(b"*")[0].decode("ascii", "replace").lower()
        try:
            if word[2] in b"bB":
                raw = base64.b64decode(word[3] + b"=" * (-len(word[3]) % 4))
            else:
                raw = binascii.a2b_qp(word[3], header=True)
        except ValueError:
            raw, code = word[0], charset
        if parts and parts[-1][1] == code and at:
            raw = parts.pop()[0] + raw  # a character may be cut in two by the words' border
        parts.append((raw, code))
        at = word.end()
    parts.append((value[at:], charset))
    return "".join(text_of(raw, code) for raw, code in parts)


def clean_subject(text: str) -> str:
    """As `git mailinfo -b`: no `Re:`, no `[PATCH ...]`; other tags stay; blanks become single."""
    at = 0
    while at < len(text):
        char = text[at]
        if char in "rR" and len(text) > at + 3 and text[at + 1 : at + 3].lower() == "e:":
            text = text[:at] + text[at + 3 :]
        elif char in " \t:":
            text = text[:at] + text[at + 1 :]
        elif char == "[" and "]" in text[at:]:
            end = text.index("]", at) + 1
            if "PATCH" in text[at:end]:
                text = text[:at] + text[end:]
            else:
                at = end + (text[end : end + 1] in tuple(_BLANKS))
        else:
            break
    return re.sub(r"[ \t\n\r]+", " ", text).strip(_BLANKS)


def split_author(text: str) -> tuple[str, str] | None:
    """Name and address of a From line; the address alone stands for both."""
    text = re.sub(r"\s+", " ", _unquote_pairs(text)).strip()
    at = text.find("@")
    if at < 0:
        match = re.match(r"([^<]*)<([^>]*)>", text)
        if match is None:
            return None
        name, email = match[1].strip(), match[2]
        return name or email, email
    start = max(text.rfind(" ", 0, at), text.rfind("<", 0, at)) + 1
    stop = re.compile(r"[ >]|\Z").search(text, at)
    assert stop is not None
    email = text[start : stop.start()]
    head = text[:start].removesuffix("<")
    name = re.sub(" +", " ", head + " " + text[stop.end() :]).strip()
    if name.startswith("(") and name.endswith(")"):
        name = name[1:-1]
    if not name or any(c in "@<>" for c in name):
        name = email
    return name, email


def _unquote_pairs(text: str) -> str:
    """Take RFC 822 quotes away; in quotes and comments a backslash makes a character plain."""
    if '"' not in text and "\\" not in text:
        return text
    out = ""
    at = 0
    quoted = False
    depth = 0
    while at < len(text):
        char = text[at]
        if char == "\\" and (quoted or depth) and at + 1 < len(text):
            at += 1
            out += text[at]
        elif char == '"' and not depth:
            quoted = not quoted
        else:
            if not quoted:
                depth = max(depth + (char == "(") - (char == ")"), 0)
            out += char
        at += 1
    return out


def plain_subject(subject: str) -> str:
    """What the Subject line alone gives back of a subject."""
    return clean_subject(f"[PATCH] {subject}")


def plain_author(name: str, email: str) -> tuple[str, str] | None:
    """What the From line alone gives back of an author."""
    return split_author(written_author(name, email)[1])


def _must_encode(text: str) -> bool:
    return not text.isascii() or "=?" in text or _CONTROL.search(text) is not None


def written_subject(subject: str) -> str:
    if _must_encode(subject):
        return "[PATCH] " + _encoded(subject, len("Subject: [PATCH] "), address=False)
    return _wrapped(f"[PATCH] {subject}", len("Subject: "))


def written_author(name: str, email: str) -> tuple[str, str]:
    """A From line's value as written, and as it reads when its encoded words are decoded."""
    email = re.sub(r"[\s<>\x00-\x1f\x7f]", "_", email)
    width = 78
    read = name
    if _must_encode(name):
        text = _encoded(name, len("From: "), address=True)
        width = 76
    else:
        if _SPECIAL.search(name):
            read = '"' + re.sub(r'(["\\])', r"\\\1", name) + '"'
        text = _wrapped(read, len("From: "))
    last = len(text) - text.rfind("\n") - 1 if "\n" in text else len("From: ") + len(text)
    fold = "\n" if width < last + len(email) + 3 else ""
    return f"{text}{fold} <{email}>", f"{read} <{email}>"


def _wrapped(text: str, used: int) -> str:
    """Folded at blanks to git's 78 columns; `used` are taken on the first line."""
    out = ""
    column = used
    for word in text.split():
        if not out:
            out = word
            column += len(word)
        elif column + 1 + len(word) > 78:
            out += "\n " + word
            column = 1 + len(word)
        else:
            out += " " + word
            column += 1 + len(word)
    return out


def _encoded(text: str, used: int, address: bool) -> str:
    """Encoded words as git writes them: Q, UTF-8, at most 76 columns, whole characters."""
    out = "=?UTF-8?q?"
    column = used + 10
    for char in text:
        plain = char.isascii() and (char.isalnum() if address else char.isprintable())
        if (plain and char not in " =?_") or char in "!*+-/":
            code = char
        else:
            code = "".join(f"={byte:02X}" for byte in char.encode())
        if column + len(code) + 2 > 76:
            out += "?=\n =?UTF-8?q?"
            column = 11
        out += code
        column += len(code)
    return out + "?="
