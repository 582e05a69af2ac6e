"""The series: what series.yaml says, checked. Order lives here, hunks live in patches/."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from posixpath import normpath
from typing import TypeAlias

from hexpatch import yamltree
from hexpatch.errors import HexpatchError, InvalidSeries, Problem
from hexpatch.yamltree import (
    CONTROL,
    ListNode,
    MapNode,
    Node,
    Reader,
    Rule,
    TextNode,
    has_control,
    is_null,
    shown,
    similar,
)

FILE = "series.yaml"
VERSION = 1
DEFAULT_URL = "https://github.com/ggml-org/llama.cpp.git"
SOURCES = ("clone", "remote", "snapshot")
STATES = ("draft", "ready", "sent", "landed", "private", "hold")
PATCH_KEYS = ("name", "file", "why", "files", "needs", "ops", "state", "pr", "landed")

Option: TypeAlias = str | int | tuple[str, ...]


@dataclass(frozen=True)
class Base:
    """The upstream commit the series stands on: `name` for people, the ids lock content."""

    name: str
    commit: str | None = None
    tree: str | None = None
    snapshot: str | None = None


@dataclass(frozen=True)
class Upstream:
    """Where upstream lives; `repo` is the user's own clone, absolute."""

    url: str = DEFAULT_URL
    branch: str = "master"
    repo: Path | None = None


@dataclass(frozen=True)
class Patch:
    """One entry. `file` is relative to patches/, `files` are the owned files in src/."""

    name: str
    file: str
    why: str = ""
    files: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    ops: tuple[str, ...] = ()
    state: str = "draft"
    pr: str | None = None
    landed: str | None = None
    line: int = field(default=0, compare=False)


@dataclass(frozen=True)
class Group:
    """Patches that become one pull request."""

    name: str
    title: str
    patches: tuple[str, ...]
    branch: str


@dataclass(frozen=True)
class Target:
    """What is built and run, with its options."""

    name: str
    options: Mapping[str, Option] = field(default_factory=dict)


@dataclass(frozen=True)
class Series:
    """A valid series.yaml. `src` maps directories of src/ to upstream's."""

    root: Path
    upstream: Upstream
    base: Base
    sources: tuple[str, ...] = SOURCES
    src: tuple[tuple[str, str], ...] = ()
    strip_trailers: tuple[str, ...] = ()
    patches: tuple[Patch, ...] = ()
    groups: tuple[Group, ...] = ()
    targets: tuple[Target, ...] = ()

    def patch(self, name: str) -> Patch:
        """The patch of this name, or an error that knows a similar one."""
        found = self._by_name.get(name)
        if found is None:
            raise HexpatchError(f"no patch named {shown(name)}", similar(name, self._by_name))
        return found

    @property
    def active(self) -> tuple[Patch, ...]:
        """The patches of the stack: neither landed upstream nor on hold."""
        return tuple(
            patch
            for patch in self.patches
            if patch.landed is None and patch.state not in ("landed", "hold")
        )

    def upstream_path(self, src_file: str) -> str:
        """Where an owned file goes upstream: longest prefix of `src:`, else without `src/`."""
        return upstream_path(self.src, src_file)

    def src_file(self, path: str) -> str | None:
        """Inverse of upstream_path, for declared files and for whatever `src:` maps."""
        if path in self._declared:
            return self._declared[path]
        fitting = [(up, own) for own, up in self.src if _tail(path, up) is not None]
        if not fitting:
            return None
        up, own = max(fitting, key=lambda pair: len(pair[0]))
        file = f"src/{own}{path[len(up) :]}"
        return file if self.upstream_path(file) == path else None

    @cached_property
    def _by_name(self) -> dict[str, Patch]:
        return {patch.name: patch for patch in self.patches}

    @cached_property
    def _declared(self) -> dict[str, str]:
        return {self.upstream_path(f): f for patch in self.patches for f in patch.files}


def load(root: Path) -> Series:
    """The series in this directory, or InvalidSeries with all that is wrong with it."""
    try:
        data = (root / FILE).read_bytes()
    except FileNotFoundError:
        raise HexpatchError(f"no {FILE} in {root}", "start a series with `hexpatch init`") from None
    except OSError as error:
        raise HexpatchError(f"cannot read {root / FILE}: {error.strerror}") from error
    return parse(data, root)


def parse(data: bytes, root: Path, *, disk: bool = True) -> Series:
    """A series from bytes; `disk=False` doesn't ask whether the files it names exist."""
    document, problems = yamltree.read(data, FILE)
    series = _Check(root, problems, disk).series(document.root) if document else None
    if problems or series is None:
        raise InvalidSeries(_capped(problems))
    return series


def orphans(series: Series) -> tuple[str, ...]:
    """Names of .patch files in patches/ that no entry lists."""
    listed = {patch.file for patch in series.patches}
    try:
        names = os.listdir(series.root / "patches")  # noqa: PTH208 - Path objects are slow here
    except OSError:
        return ()
    return tuple(sorted(n for n in names if n.endswith(".patch") and n not in listed))


def upstream_path(src: Iterable[tuple[str, str]], src_file: str) -> str:
    """An owned file's path upstream under a `src:` mapping."""
    if not src_file.startswith("src/"):
        raise HexpatchError(f"{shown(src_file)} is not an owned file", "owned files live in src/")
    path = src_file[4:]
    fitting = [(own, up) for own, up in src if _tail(path, own) is not None]
    if not fitting:
        return path
    own, up = max(fitting, key=lambda pair: len(pair[0]))
    return up + path[len(own) :]


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


_HIDDEN = (*CONTROL, "Cf")  # Cf: what a disk or a reader may ignore, as in .g<ZWJ>it
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_STEM = re.compile(r"[A-Za-z0-9_+][A-Za-z0-9._+-]*")
_WORD = re.compile(r"[^\s-]\S*")
_OP = re.compile(r"[A-Z][A-Z0-9_]*")
_ID = re.compile(r"[0-9a-f]{40}")
_SNAPSHOT = re.compile(
    r"pypi:[A-Za-z0-9][A-Za-z0-9._-]*==[A-Za-z0-9][A-Za-z0-9.+!_-]*"
    r"|npm:(?:@[a-z0-9._-]+/)?[a-z0-9][a-z0-9._-]*@[A-Za-z0-9][A-Za-z0-9.+-]*"
)
_PR = re.compile(r"#?([1-9][0-9]{0,9})|(https://[^\s/]+/\S+)")
_TRAILER = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*")
_TARGET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@/+-]*")
_OPTION = re.compile(r"[a-z][a-z0-9_-]*")
_TOP_KEYS = (
    "version",
    "upstream",
    "base",
    "sources",
    "src",
    "strip_trailers",
    "patches",
    "groups",
    "targets",
)
_TARGET_KEYS = ("ops", "jobs", "timeout")


def _tail(path: str, prefix: str) -> str | None:
    """What is left of a path below a prefix; None when it isn't below it."""
    return path[len(prefix) :] if path == prefix or path.startswith(prefix + "/") else None


def _capped(problems: list[Problem]) -> tuple[Problem, ...]:
    """In file order, at most yamltree.MAX_SHOWN lines."""
    ordered = sorted(problems, key=lambda problem: (problem.line, problem.column))
    if len(ordered) <= yamltree.MAX_SHOWN:
        return tuple(ordered)
    more = Problem(FILE, 0, 0, f"... and {len(ordered) - yamltree.MAX_SHOWN + 1} more")
    return (*ordered[: yamltree.MAX_SHOWN - 1], more)


class _Check(Reader):
    """Reads the tree into dataclasses and notes every problem with its place."""

    def __init__(self, root: Path, problems: list[Problem], disk: bool) -> None:
        super().__init__(FILE, problems)
        self.root = root
        self.disk = disk
        self.inside: dict[str, bool] = {}

    def series(self, top: MapNode) -> Series | None:
        """The whole file; None when it is written for a newer tool."""
        version = top.get("version")
        if version is not None and not self.version(version):
            return None
        fields = self.fields(top, FILE, _TOP_KEYS)
        for key in ("base", "patches"):
            if top.get(key) is None:
                self.fault(top, f"{key} is missing")
        src = self.src(fields.get("src"))
        patches = self.patches(fields.get("patches"), src)
        return Series(
            root=self.root,
            upstream=self.upstream(fields.get("upstream")),
            base=self.base(top.get("base")),
            sources=tuple(self.texts(fields.get("sources"), "sources", _one_of(SOURCES)))
            if "sources" in fields
            else SOURCES,
            src=src,
            strip_trailers=tuple(
                self.texts(fields.get("strip_trailers"), "strip_trailers", _like(_TRAILER))
            ),
            patches=patches,
            groups=self.groups(fields.get("groups"), patches),
            targets=self.targets(fields.get("targets")),
        )

    def version(self, node: Node) -> bool:
        """False, with only this problem noted, when the rest can't be understood."""
        text = node.text if isinstance(node, TextNode) else ""
        if not (text.isascii() and text.isdigit()):
            self.fault(node, f"version must be a number, the number {VERSION}")
        elif text.lstrip("0") in ("", str(VERSION)):
            if text != str(VERSION):
                self.fault(node, f"there is no version {shown(text)}; write {VERSION}")
        else:
            self.problems.clear()
            text = f"version {shown(text)} is newer than this tool, which knows {VERSION}"
            self.fault(node, text)
            return False
        return True

    def upstream(self, node: Node | None) -> Upstream:
        fields = self.fields(node, "upstream", ("url", "branch", "repo"))
        repo = self.text(fields.get("repo"), "upstream.repo")
        return Upstream(
            url=self.text(fields.get("url"), "upstream.url", url_fault) or DEFAULT_URL,
            branch=self.text(fields.get("branch"), "upstream.branch", ref_fault) or "master",
            repo=_clone(self.root, repo) if repo else None,
        )

    def base(self, node: Node | None) -> Base:
        if node is not None and not isinstance(node, MapNode):
            return Base(self.text(node, "base", _like(_WORD)))
        fields = self.fields(node, "base", ("name", "commit", "tree", "snapshot"))
        if node is not None and "name" not in fields:
            self.fault(node, "base.name is missing")
        an_id = _like(_ID, "is not an id of 40 lower-case hex digits")
        snapshot = _like(_SNAPSHOT, "is not like pypi:NAME==VERSION or npm:NAME@VERSION")
        return Base(
            name=self.text(fields.get("name"), "base.name", _like(_WORD)),
            commit=self.text(fields.get("commit"), "base.commit", an_id) or None,
            tree=self.text(fields.get("tree"), "base.tree", an_id) or None,
            snapshot=self.text(fields.get("snapshot"), "base.snapshot", snapshot) or None,
        )

    def src(self, node: Node | None) -> tuple[tuple[str, str], ...]:
        """Directory pairs; no two of them may meet upstream."""
        mapping: dict[str, str] = {}
        for key, value in self.pairs(node, "src"):
            own = self.text(key, "src:", path_fault)
            up = self.text(value, f"src: {shown(key.text)}:", path_fault)
            own, up = normpath(own), normpath(up)
            if own in mapping or up in mapping.values():
                self.fault(key, f"src: {shown(own)} or {shown(up)} is mapped twice")
            elif own != "." and up != ".":
                mapping[own] = up
        return tuple(mapping.items())

    def patches(self, node: Node | None, src: tuple[tuple[str, str], ...]) -> tuple[Patch, ...]:
        found: dict[str, Patch] = {}
        folded: dict[str, Patch] = {}
        owners: dict[str, tuple[str, str]] = {}
        needs: list[tuple[Patch, Node, str]] = []
        for number, item in enumerate(self.items(node, "patches"), 1):
            patch, places = self.patch(item, f"entry {number}")
            if patch is None:
                continue
            keys = (patch.name.casefold(), "/" + patch.file.casefold())
            other = next((folded[key] for key in keys if key in folded), None)
            if other is not None:
                self.fault(item, _clash(patch, other))
                continue
            folded.update(dict.fromkeys(keys, patch))
            found[patch.name] = patch
            for file, place in places.get("files", {}).items():
                self.own(patch, file, place, src, owners)
            needs += [(patch, place, name) for name, place in places.get("needs", {}).items()]
        self.order(found, needs)
        return tuple(found.values())

    def patch(self, node: Node, what: str) -> tuple[Patch | None, dict[str, dict[str, Node]]]:
        """One entry, and the places of its files and needs."""
        if isinstance(node, TextNode) and not node.null and (node.style or not node.text.isdigit()):
            name = self.text(node, f"{what}: name", _name_fault)
            fields: dict[str, Node] = {}
            file = f"{name}.patch"
        elif isinstance(node, MapNode):
            fields = self.fields(node, what, PATCH_KEYS)
            name, file = self.name_and_file(node, fields, what)
        else:
            self.fault(node, f"{what} must be a name or a mapping")
            return None, {}
        what = f"{name or what}:"
        files = self.texts(fields.get("files"), f"{what} files", _owned_fault)
        needs = self.texts(fields.get("needs"), f"{what} needs")
        ops = self.texts(fields.get("ops"), f"{what} ops", _like(_OP))
        state = self.text(fields.get("state"), f"{what} state", _one_of(STATES)) or "draft"
        landed = self.text(fields.get("landed"), f"{what} landed") or None
        pr = self.text(
            fields.get("pr"), f"{what} pr", _like(_PR, "is not a number or an https address")
        )
        if not name:
            return None, {}
        self.exists(fields.get("file", node), f"patches/{file}", f"{what} patches/{file}")
        return Patch(
            name=name,
            file=file,
            why=self.text(fields.get("why"), f"{what} why"),
            files=tuple(files),
            needs=tuple(needs),
            ops=tuple(ops),
            state=state,
            pr=pr.removeprefix("#") or None,
            landed=landed,
            line=node.start.line,
        ), {"files": files, "needs": needs}

    def name_and_file(self, node: Node, fields: dict[str, Node], what: str) -> tuple[str, str]:
        """A name and its file, each made from the other if need be; '' with a problem noted."""
        if "name" not in fields and "file" not in fields:
            self.fault(node, f"{what} has neither name nor file")
            return "", ""
        name = self.text(fields.get("name"), f"{what}: name", _name_fault)
        if "file" not in fields:
            return name, f"{name}.patch"
        file = self.text(fields["file"], f"{what}: file", _file_fault)
        if not file:
            return name, f"{name}.patch" if name else ""
        file = normpath(file)
        stem = file.rpartition("/")[2].removesuffix(".patch")
        if name and name != stem:
            self.fault(fields["file"], f"{what}: file {file} is not of name {name}")
        return name or ("" if "name" in fields else stem), file

    def own(
        self,
        patch: Patch,
        file: str,
        place: Node,
        src: tuple[tuple[str, str], ...],
        owners: dict[str, tuple[str, str]],
    ) -> None:
        """Note an owned file; a path, here or upstream, has one owner."""
        path = upstream_path(src, file)
        name, other = owners.setdefault(path, (patch.name, file))
        if other != file:
            self.fault(place, f"{file} and {other} (of {name}) are both {path} upstream")
        elif name != patch.name:
            self.fault(place, f"{file} belongs to {name} and to {patch.name}")
        if patch.state != "landed" and patch.landed is None:  # then it lives upstream
            self.exists(place, file, f"{patch.name}: {file}")

    def order(self, found: Mapping[str, Patch], needs: list[tuple[Patch, Node, str]]) -> None:
        """What a patch needs must stand before it."""
        rank = {name: number for number, name in enumerate(found)}
        for patch, place, name in needs:
            if name not in rank:
                self.unknown(
                    place, f"{patch.name} needs {shown(name)}, which is no patch", name, rank
                )
            elif name == patch.name:
                self.fault(place, f"{name} needs itself")
            elif rank[name] > rank.get(patch.name, -1):
                text = f"{patch.name} needs {name}, which comes after it"
                circle = None
                if len(self.problems) < yamltree.MAX_SHOWN:
                    circle = _way(name, patch.name, lambda name: found[name].needs, rank)
                way = " -> ".join((patch.name, *circle)) if circle else ""
                self.fault(place, f"{text}, in a circle: {way}" if way else text)

    def groups(self, node: Node | None, patches: tuple[Patch, ...]) -> tuple[Group, ...]:
        known = {patch.name: patch for patch in patches}
        groups: dict[str, Group] = {}
        owner: dict[str, str] = {}
        branches: dict[str, str] = {}
        for number, item in enumerate(self.items(node, "groups"), 1):
            what = f"group {number}"
            fields = self.fields(item, what, ("name", "title", "patches", "branch"))
            name = self.text(fields.get("name"), f"{what}: name", ref_fault)
            if "name" not in fields:
                self.fault(item, f"{what} has no name")
            what = f"group {name}" if name else what
            if name and name in groups:
                self.fault(item, f"{what} twice")
            members = self.texts(fields.get("patches"), f"{what}: patches")
            if not members:
                self.fault(item, f"{what} has no patches")
            for member, place in members.items():
                self.member(name, member, place, known, owner)
            branch = self.text(fields.get("branch"), f"{what}: branch", ref_fault) or name
            self.branch(fields.get("branch", item), branch, name, branches)
            title = self.text(fields.get("title"), f"{what}: title")
            groups.setdefault(name, Group(name, title, tuple(members), branch))
        return tuple(groups.values())

    def member(
        self, group: str, name: str, place: Node, known: dict[str, Patch], owner: dict[str, str]
    ) -> None:
        """A patch is in one group, and a private one in none."""
        if name not in known:
            text = f"group {group}: {shown(name)} is no patch"
            self.unknown(place, text, name, known)
        elif owner.setdefault(name, group) != group:
            self.fault(place, f"{name} is in two groups, {owner[name]} and {group}")
        elif known[name].state == "private":
            self.fault(place, f"group {group}: {name} is private")

    def branch(self, place: Node, branch: str, group: str, branches: dict[str, str]) -> None:
        """Git cannot hold one branch twice, nor a branch below another."""
        parts = branch.split("/")
        folders = ["/".join(parts[:end]) for end in range(1, len(parts))]
        for other in (branch, branch + "/", *folders):
            if branch and other in branches:
                owner = branches[other]
                text = f"group {group}: branch {branch} is in the way of that of {owner}"
                self.fault(place, text)
                break
        branches.setdefault(branch, group)
        for folder in folders:
            branches.setdefault(folder + "/", group)

    def targets(self, node: Node | None) -> tuple[Target, ...]:
        targets = []
        for key, value in self.pairs(node, "targets"):
            name = self.text(key, "target", _like(_TARGET))
            options: dict[str, Option] = {}
            for option, setting in self.pairs(value, f"target {name}"):
                self.text(option, f"target {name}: key", _option_fault)
                if not is_null(setting):
                    options[option.text] = self.option(setting, f"target {name}: {option.text}")
            targets.append(Target(name, options))
        return tuple(targets)

    def option(self, node: Node, what: str) -> Option:
        """A list of texts, a whole number, or text."""
        key = what.rpartition(" ")[2]
        if isinstance(node, ListNode) or key == "ops":
            return tuple(self.texts(node, what, _like(_OP) if key == "ops" else None))
        text = self.text(node, what)
        plain = isinstance(node, TextNode) and not node.style
        if plain and re.fullmatch(r"0|[1-9][0-9]{0,8}", text):
            return int(text)
        if key in ("jobs", "timeout"):
            self.fault(node, f"{what} must be a whole number")
        return text

    def exists(self, place: Node, path: str, what: str) -> None:
        """A path must be a regular file whose links, if any, stay in the repository."""
        if not self.disk:
            return
        full = f"{self.root}/{path}"
        try:
            mode = os.lstat(full).st_mode
            link = stat.S_ISLNK(mode)
            mode = os.stat(full).st_mode if link else mode  # noqa: PTH116 - no Path per file
            stays = self.stays(full) if link else self.stays_folder(full.rpartition("/")[0])
        except (OSError, ValueError):
            self.fault(place, f"{what} does not exist")
            return
        if not stays:
            self.fault(place, f"{what} is a link that leads out of the repository")
        elif not stat.S_ISREG(mode):
            self.fault(place, f"{what} is not a regular file")

    def stays_folder(self, folder: str) -> bool:
        if folder not in self.inside:
            self.inside[folder] = self.stays(folder)
        return self.inside[folder]

    def stays(self, path: str) -> bool:
        root = os.path.realpath(self.root)
        return Path(os.path.realpath(path)).is_relative_to(root)


def _like(pattern: re.Pattern[str], fault: str = "") -> Rule:
    wrong = fault or f"does not match {pattern.pattern}"
    return lambda text: None if pattern.fullmatch(text) else wrong


def _one_of(words: tuple[str, ...]) -> Rule:
    wrong = f"is none of {', '.join(words)}"
    return lambda text: None if text in words else wrong


def _name_fault(name: str) -> str | None:
    if name.endswith(".patch"):
        return f"is a file name; write `file: {shown(name)}`"
    fits = _NAME.fullmatch(name) and len(name) <= 60
    return None if fits else "must be kebab-case, like add-rope-f16, of at most 60 characters"


def _file_fault(file: str) -> str | None:
    wrong = path_fault(file)
    if wrong:
        return wrong
    stem = normpath(file).rpartition("/")[2]
    if not stem.endswith(".patch"):
        return "must end in .patch"
    return None if _STEM.fullmatch(stem) else "may only hold letters, digits and ._+-"


def _owned_fault(file: str) -> str | None:
    wrong = path_fault(file)
    if wrong or file.startswith("src/"):
        return wrong or (None if normpath(file) == file else f"must be written {normpath(file)}")
    return "must be in src/"


def _option_fault(key: str) -> str | None:
    hint = None if key in _TARGET_KEYS else similar(key, _TARGET_KEYS)
    return f"is unknown ({hint})" if hint else _like(_OPTION)(key)


def _clash(patch: Patch, other: Patch) -> str:
    """What is wrong with an entry that an earlier one forbids."""
    if patch.file == other.file or patch.name == other.name:
        same = patch.file if patch.file == other.file else patch.name
        return f"{same} is listed twice (lines {other.line} and {patch.line})"
    return f"{patch.name} differs from {other.name} (line {other.line}) only in case"


def _way(
    start: str, goal: str, needs: Callable[[str], tuple[str, ...]], known: Mapping[str, int]
) -> list[str] | None:
    """A way along needs from one patch to another, if there is one."""
    came: dict[str, str] = {start: ""}
    for name in (queue := [start]):
        for need in needs(name):
            if need in known and need not in came:
                came[need] = name
                queue.append(need)
    if goal not in came:
        return None
    way = [goal]
    while way[-1] != start:
        way.append(came[way[-1]])
    return way[::-1]


def _clone(root: Path, repo: str) -> Path:
    home = os.path.expanduser(repo)  # noqa: PTH111 - Path.expanduser fails without a home
    return Path(os.path.normpath(root.absolute() / home))
