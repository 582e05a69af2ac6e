"""Titles in upstream's form, `module : title`. Nothing is changed: findings are told."""

from __future__ import annotations

import re

LIMIT = 72  # 8.7 % of upstream's own titles are longer: worth a look, no fault

_WORD = r"[\w.+*/{}-]+"
_TITLE = re.compile(rf"({_WORD}(?:(?: ?[,+&] ?){_WORD})*)?( *):( *)(.*)", re.DOTALL)
_CONVENTIONAL = re.compile(r"(?:(?:feat|fix|chore)(?:\([^)]*\))?|[a-z]+\([^)]*\))!?\s*:\s*(.*)")
_MARKS = (
    (r"\[[^\]]*\bPATCH\b[^\]]*\]", "a mail prefix is left in the title"),
    (r"[\[(]?(?:WIP|DRAFT|DNM|DO[ -]NOT[ -]MERGE)\b", "work in progress; use a draft pull request"),
    (r"(?:fixup|squash|amend)! ", "an autosquash commit is still in the stack"),
    (r"Merge (?:branch|tag|commit|pull request|remote-tracking branch)\b", "a merge commit"),
)


def unfinished(title: str) -> str | None:
    """Why a commit of this title is not meant for other eyes yet."""
    for pattern, why in _MARKS:
        if re.match(pattern, title, re.IGNORECASE if "[" in pattern else 0):
            return why
    return None


def check_title(title: str) -> list[tuple[str, str]]:
    """Findings (severity error or warn, text) against upstream's `module : title` form."""
    mark = unfinished(title)
    if mark:
        return [("error", mark)]
    if not title.strip():
        return [("error", "there is no title")]
    found: list[str] = []
    if re.fullmatch(r'(?:Revert|Reapply) ".+"', title) is None:
        error, found = _form(title)
        if error:
            return [("error", error)]
    if len(title) > LIMIT:
        found.append(f"{len(title)} characters, more than {LIMIT}")
    if title != title.strip() or re.search(r"[\x00-\x1f\x7f]", title):
        found.append("has blanks at an end, or control characters")
    return [("warn", text) for text in found]


def _form(title: str) -> tuple[str, list[str]]:
    if title.startswith("["):
        return "", ["a leading [tag] is dropped by plain `git am`"]
    conventional = _CONVENTIONAL.fullmatch(title)
    if conventional:
        return "", ["a conventional-commit form; upstream's is `module : title`"]
    match = _TITLE.fullmatch(title)
    if match is None:
        return "no module; upstream's form is `module : title`", []
    module, _, gap, text = match.groups()
    if not module:
        return "no module before the colon", []
    if not text.strip():
        return "nothing after the colon", []
    found = []
    if any(re.fullmatch(r"[A-Z][a-z-]+", word) for word in re.split(r"[ ,+&/]+", module)):
        found.append(f"the module is written in lower case: {module.lower()}")
    if not gap:
        found.append("the space after the colon is missing")
    if re.search(r"\(#[0-9]+\)\s*$", text):
        found.append("the (#number) is added when upstream merges; leave it out of the title")
    if text.rstrip().endswith(".") and not text.rstrip().endswith("..."):
        found.append("a full stop at the end")
    if len(text.split()) < 2:
        found.append("it says nothing: fewer than two words")
    return "", found
