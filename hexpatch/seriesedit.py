"""Edits of series.yaml by surgery on its text: bytes in, bytes out, comments stay.

Every edit knows the meaning it wants; the result is read again and must have it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hexpatch import yamledit, yamltree
from hexpatch.errors import HexpatchError
from hexpatch.series import DEFAULT_URL, FILE, PATCH_KEYS, Base
from hexpatch.yamledit import HINT, Path, Value
from hexpatch.yamlquote import quote
from hexpatch.yamltree import Document, MapNode, TextNode, plain, shown, similar

_BASE_KEYS = ("name", "commit", "tree", "snapshot")


# --- edits


def set_base(text: bytes, base: Base) -> bytes:
    """Pin another base, in the form, short or mapping, the file has if that can hold it."""
    document, want = _open(text)
    values = {key: getattr(base, key) for key in _BASE_KEYS}
    given = {key: value for key, value in values.items() if value is not None}
    root, node = document.root, document.at("base")
    if node is None:
        raise HexpatchError(f"{FILE} has no base", HINT)
    if isinstance(node, MapNode) and node.pairs:
        others = {key: value for key, value in want["base"].items() if key not in values}
        want["base"] = given | others
        for key, value in values.items():
            document = yamledit.set_key(document, ("base",), key, value, _BASE_KEYS)
    elif len(given) == 1:
        want["base"] = base.name
        document = yamledit.set_key(document, (), "base", base.name, ())
    else:
        want["base"] = given
        place = yamledit.key_of(root, "base")
        indent = " " * (place.start.column + 1)
        lines = [f"{indent}{key}: {quote(value)}" for key, value in given.items()]
        flat = yamledit.put(document, place, node, yamledit.flow_map(given))
        cuts = flat if root.flow else yamledit.fill(document, place, node, lines)
        document = yamledit.cut(document, cuts)
    return _close(document, want)


def add_patch(text: bytes, entry: Mapping[str, object], after: str | None = None) -> bytes:
    """Insert an entry behind another, else at the end, in the style of its neighbours."""
    document, want = _open(text)
    given = {key: _listed(value) for key, value in entry.items() if value is not None}
    names = _names(want)
    name = _name(given)
    if not name:
        raise HexpatchError("an entry has neither name nor file")
    if name in names:
        raise HexpatchError(f"{FILE} already has a patch {shown(name)}")
    at = len(names) if after is None else _find(names, after) + 1
    short = list(given) == ["name"] and bool(names) and all(isinstance(e, str) for e in _all(want))
    item: Any = name if short else given
    document = yamledit.insert(document, ("patches",), at, item)
    want["patches"] = [*_all(want)[:at], item, *_all(want)[at:]]
    return _close(document, want)


def remove_patch(text: bytes, name: str) -> bytes:
    """Take out an entry with the comment attached to it, and every mention of it."""
    document, want = _open(text)
    _find(_names(want), name)
    while mentions := _mentions(document, name):
        document = yamledit.cut(
            document, [cut for path in mentions for cut in yamledit.removal(document, path)]
        )
    for entry in _all(want):
        _drop(entry, "needs", name)
    groups = _all(want, "groups")
    emptied = [g for g in groups if _drop(g, "patches", name) and not g["patches"]]
    for at in range(len(groups) - 1, -1, -1):
        if groups[at] in emptied:
            document = yamledit.cut(document, yamledit.removal(document, ("groups", at)))
            del groups[at]
    at = _find(_names(want), name)
    document = yamledit.cut(document, yamledit.removal(document, ("patches", at)))
    del want["patches"][at]
    return _close(document, want)


def set_patch(text: bytes, name: str, key: str, value: Value | None) -> bytes:
    """Set a key of an entry, or with None remove it."""
    document, want = _open(text)
    at = _find(_names(want), name)
    node = document.at("patches", at)
    if isinstance(node, TextNode):
        if value is None:
            return text
        flow = yamledit.in_flow(document, ("patches", at))
        start, end = node.start.offset, yamledit.end_of(document, node)
        old = document.text[start:end]
        indent = document.newline + " " * (node.start.column - 1)
        written = f"name: {old}{indent}{key}: {yamledit.in_line(value)}"
        if flow:
            written = f"{{name: {old}, {key}: {yamledit.in_line(value, True)}}}"
        document = yamledit.cut(document, [(start, end, written)])
        want["patches"][at] = {"name": name}
    else:
        document = yamledit.set_key(document, ("patches", at), key, value, PATCH_KEYS)
    if value is None:
        want["patches"][at].pop(key, None)
    else:
        want["patches"][at][key] = _listed(value)
    return _close(document, want)


def add_to_group(text: bytes, group: str, name: str) -> bytes:
    """Add a patch to a group, which is made if there is none of this name."""
    document, want = _open(text)
    _find(_names(want), name)
    for item in _all(want, "groups"):
        if name in (item.get("patches") or ()) and item.get("name") != group:
            raise HexpatchError(f"{name} is already in group {item.get('name')}")
    for at, item in enumerate(_all(want, "groups")):
        if item.get("name") == group:
            members = item.get("patches") or []
            if name in members:
                return text
            document = yamledit.insert(document, ("groups", at, "patches"), len(members), name)
            item["patches"] = [*members, name]
            return _close(document, want)
    entry = {"name": group, "patches": [name]}
    at = len(_all(want, "groups"))
    document = yamledit.insert(document, ("groups",), at, entry, ("patches",))
    want["groups"] = [*_all(want, "groups"), entry]
    return _close(document, want)


def template(
    url: str | None,
    branch: str,
    repo: str | None,
    base: Base,
    src: Mapping[str, str] | None = None,
) -> bytes:
    """A fresh series.yaml that teaches its form. Without a URL the well-known one counts."""
    clone = f"repo: {quote(repo)}" if repo else "# repo: ../llama.cpp"
    lines = [f"  {key}: {quote(getattr(base, key))}" for key in _BASE_KEYS if getattr(base, key)]
    mapping = [f"  {quote(own)}: {quote(up)}" for own, up in (src or {}).items()]
    written = _TEMPLATE.format(
        url=f"url: {quote(url)}" if url else f"# url: {DEFAULT_URL}",
        branch=quote(branch),
        repo=clone,
        base="\n".join(lines),
        src="\n".join(["src:", *mapping] if mapping else ["# src:", *_SRC_EXAMPLE]),
    )
    yamltree.parse(written.encode())
    return written.encode()


_SRC_EXAMPLE = ("#   htp: ggml/src/ggml-hexagon/htp",)
_TEMPLATE = """\
# The series: which patches, in which order, on which upstream commit.
# hexpatch edits this file in place; comments and order stay.
version: 1

upstream:
  {url}
  branch: {branch}
  # A clone of your own: its objects are used, its branches and files are never touched.
  {repo}

# The upstream commit the patches stand on. `name` is for people, the ids lock the content.
# Moved by `hexpatch rebase --onto REV`.
base:
{base}

# Where to look for the base, in this order.
# sources: [clone, remote, snapshot]

# Where the directories of src/ go upstream.
{src}

# One entry per patch, in the order they are applied. The file is patches/NAME.patch.
#   - name: rope-f16             # kebab-case
#     why: one line of text
#     files: [src/htp/rope.c]    # new files this patch owns
#     needs: [other-patch]       # must stand before it
#     ops: [ROPE]                # what test-backend-ops should check
#     state: draft               # draft, ready, sent, landed, private or hold (until you say so)
#     held: v1                   # by `rebase -k`: out since v1, comes back where it fits
#     pr: 12345
patches: []

# Patches that become one pull request.
#   - name: rope
#     title: "hexagon : add f16 ROPE"
#     patches: [rope-f16]
groups: []

# What to build and run.
# targets:
#   cpu: {{jobs: 4, timeout: 900}}
"""


# --- reading and writing back


def _open(data: bytes) -> tuple[Document, Any]:
    """The document, and its meaning to be turned into the wanted one."""
    document = yamltree.parse(data)
    return document, plain(document.root)


def _close(document: Document, want: Any) -> bytes:
    if plain(document.root) != want:
        raise HexpatchError(f"cannot edit {FILE} without changing something else", HINT)
    return yamledit.to_bytes(document.text, document.bom)


# --- the meaning


def _all(want: Any, key: str = "patches") -> list[Any]:
    found = want.get(key)
    return found if isinstance(found, list) else []


def _name(entry: Any) -> str:
    if not isinstance(entry, Mapping):
        return entry or ""
    return entry.get("name") or (entry.get("file") or "").rpartition("/")[2].removesuffix(".patch")


def _names(want: Any) -> list[str]:
    return [_name(entry) for entry in _all(want)]


def _find(names: list[str], name: str) -> int:
    if name not in names:
        raise HexpatchError(f"no patch named {shown(name)}", similar(name, names))
    return names.index(name)


def _drop(entry: Any, key: str, name: str) -> bool:
    """Take a name out of a list of an entry; whether it was there."""
    members = entry.get(key) if isinstance(entry, dict) else None
    if not isinstance(members, list) or name not in members:
        return False
    entry[key] = [other for other in members if other != name]
    return True


def _listed(value: object) -> str | list[str]:
    if isinstance(value, str):
        return value
    if isinstance(value, Sequence) and all(isinstance(item, str) for item in value):
        return list(value)
    raise HexpatchError(f"{FILE} holds text and lists of text, not {type(value).__name__}")


def _all_mentions(document: Document, name: str) -> Iterator[Path]:
    """Paths of every text in `needs` and in groups that names a patch."""
    for top, key in (("patches", "needs"), ("groups", "patches")):
        for at, entry in enumerate(yamledit.items(document.at(top))):
            found = entry.get(key) if isinstance(entry, MapNode) else None
            for number, item in enumerate(yamledit.items(found)):
                if isinstance(item, TextNode) and item.text == name:
                    yield (top, at, key, number)


def _mentions(document: Document, name: str) -> list[Path]:
    """At most one mention per list, so that they can be cut at once."""
    return list({path[:2]: path for path in _all_mentions(document, name)}.values())
