"""Text as a YAML scalar that every reader, of YAML 1.1 or 1.2, takes for that text."""

from __future__ import annotations

import re

from hexpatch.errors import HexpatchError

# Words and numbers that some reader takes for something else than text.
_WORDS = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null", "~", "=", "<<"))
_NUMBER = re.compile(
    r"[-+]?(?:[0-9][0-9_]*\.?[0-9_]*|\.[0-9_]+)(?:e[-+]?[0-9]+)?"
    r"|[-+]?0[xob][0-9a-f_]+"
    r"|[-+]?[0-9][0-9_]*(?::[0-9]+)+(?:\.[0-9_]*)?"
    r"|[-+]?\.(?:inf|nan)"
    r"|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}.*",
    re.IGNORECASE,
)
_FLOW_SIGNS = frozenset(",[]{}:")


def quote(text: str, flow: bool = False, style: str = "") -> str:
    """Text as a YAML scalar: plain where every reader sees text, else double-quoted.

    A quoting `style` that was there before is kept.
    """
    simple = text.isprintable() and "\ufeff" not in text
    if style == "'" and simple:
        return "'" + text.replace("'", "''") + "'"
    if style != '"' and simple and _plain_is_safe(text, flow):
        return text
    return '"' + "".join(map(_escape, text)) + '"'


def _plain_is_safe(text: str, flow: bool) -> bool:
    if text.lower() in _WORDS or _NUMBER.fullmatch(text) or text.startswith("..."):
        return False
    if not text or not (text[0].isalnum() or text[0] in "_./+(") or text[-1] in ": ":
        return False
    return not (": " in text or " #" in text or (flow and not _FLOW_SIGNS.isdisjoint(text)))


def _escape(char: str) -> str:
    if char in '"\\':
        return "\\" + char
    if char.isprintable() and char != "\ufeff":
        return char
    code = ord(char)
    if 0xD800 <= code <= 0xDFFF:
        raise HexpatchError("a lone surrogate cannot be written to YAML")
    if char in "\n\t\r":
        return {"\n": "\\n", "\t": "\\t", "\r": "\\r"}[char]
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
