"""What a name, a path, a branch or a URL in series.yaml may be; a rule tells what is wrong."""

from __future__ import annotations

import re
from posixpath import normpath

from hexpatch.yamltree import CONTROL, Rule, has_control, shown, similar

_HIDDEN = (*CONTROL, "Cf")  # Cf: what a disk or a reader may ignore, as in .g<ZWJ>it
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_STEM = re.compile(r"[A-Za-z0-9_+][A-Za-z0-9._+-]*")
WORD = re.compile(r"[^\s-]\S*")
OP = re.compile(r"[A-Z][A-Z0-9_]*")
ID = re.compile(r"[0-9a-f]{40}")
SNAPSHOT = re.compile(
    r"pypi:[A-Za-z0-9][A-Za-z0-9._-]*==[A-Za-z0-9][A-Za-z0-9.+!_-]*"
    r"|npm:(?:@[a-z0-9._-]+/)?[a-z0-9][a-z0-9._-]*@[A-Za-z0-9][A-Za-z0-9.+-]*"
)
PR = re.compile(r"#?([1-9][0-9]{0,9})|(https://[^\s/]+/\S+)")
TRAILER = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*")
TARGET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@/+-]*")
_OPTION = re.compile(r"[a-z][a-z0-9_-]*")
_TARGET_KEYS = ("ops", "jobs", "timeout")


def like(pattern: re.Pattern[str], fault: str = "") -> Rule:
    """The rule that a whole text matches a pattern."""
    wrong = fault or f"does not match {pattern.pattern}"
    return lambda text: None if pattern.fullmatch(text) else wrong


def one_of(words: tuple[str, ...]) -> Rule:
    """The rule that a text is one of some words."""
    wrong = f"is none of {', '.join(words)}"
    return lambda text: None if text in words else wrong


def name_fault(name: str) -> str | None:
    """Why a text is no patch's name, or None."""
    if name.endswith(".patch"):
        return f"is a file name; write `file: {shown(name)}`"
    fits = _NAME.fullmatch(name) and len(name) <= 60
    return None if fits else "must be kebab-case, like add-rope-f16, of at most 60 characters"


def file_fault(file: str) -> str | None:
    """Why a path is no patch's file, or None."""
    wrong = path_fault(file)
    if wrong:
        return wrong
    stem = normpath(file).rpartition("/")[2]
    if not stem.endswith(".patch"):
        return "must end in .patch"
    return None if _STEM.fullmatch(stem) else "may only hold letters, digits and ._+-"


def owned_fault(file: str) -> str | None:
    """Why a path is not that of an owned file, or None."""
    wrong = path_fault(file)
    if wrong or file.startswith("src/"):
        return wrong or (None if normpath(file) == file else f"must be written {normpath(file)}")
    return "must be in src/"


def option_fault(key: str) -> str | None:
    """Why a word is no option of a target, or None."""
    hint = None if key in _TARGET_KEYS else similar(key, _TARGET_KEYS)
    return f"is unknown ({hint})" if hint else like(_OPTION)(key)


def ref_fault(name: str) -> str | None:
    """Why git check-ref-format --branch would refuse a name, or None."""
    if not name or name == "@" or name.startswith(("-", "/")) or name.endswith(("/", ".")):
        return "starts or ends with what git does not allow"
    if re.search(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//", name):
        return "holds a character git does not allow"
    parts = name.split("/")
    if any(part.startswith(".") or part.endswith(".lock") for part in parts):
        return "has a part that starts with . or ends with .lock"
    return "is not a branch name" if name == "HEAD" else None


def path_fault(path: str) -> str | None:
    """Why a path from a file must not be used inside a tree, or None."""
    if has_control(path, _HIDDEN):
        return "holds a control character"
    if path.startswith("/") or re.match(r"[A-Za-z]:", path):
        return "is an absolute path"
    if "\\" in path:
        return "holds a backslash"
    parts = path.split("/")
    if ".." in parts:
        return "leads out of its directory (..)"
    if path.startswith("-"):
        return "starts with -"
    if any(re.fullmatch(r"\.git[ .]*|git~[0-9]+", part, re.IGNORECASE) for part in parts):
        return "leads into .git"
    return None if normpath(path) not in (".", "") and path else "is not a file"


def url_fault(url: str) -> str | None:
    """Why a URL is not one to fetch from: only transports that run nothing are taken."""
    if url.startswith("-") or has_control(url) or " " in url:
        return "starts with -, or holds blanks or control characters"
    if re.match(r"[A-Za-z0-9+.-]*::", url):
        return "uses a remote helper"
    scheme = re.match(r"([A-Za-z0-9+.-]+)://", url)
    if scheme and scheme[1] not in ("https", "ssh", "git", "file"):
        return "is not an https, ssh, git or file URL"
    if re.match(r"(?:[a-z]+://)?(?:[^/]*@)?-", url):
        return "has a host that starts with -"
    return None
