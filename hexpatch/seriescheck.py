"""series.yaml as a whole: every key read, every problem noted with its place."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from posixpath import normpath

from hexpatch import seriesrules as rules
from hexpatch.errors import Problem
from hexpatch.seriesmodel import (
    DEFAULT_URL,
    SOURCES,
    Base,
    Group,
    Option,
    Patch,
    Series,
    Target,
    Upstream,
    upstream_path,
)
from hexpatch.yamltree import MAX_SHOWN, ListNode, MapNode, Node, Reader, TextNode, is_null, shown

FILE = "series.yaml"
VERSION = 1
STATES = ("draft", "ready", "sent", "landed", "private", "hold")
PATCH_KEYS = ("name", "file", "why", "files", "needs", "ops", "state", "pr", "landed", "held")
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


class Check(Reader):
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
            sources=tuple(self.texts(fields.get("sources"), "sources", rules.one_of(SOURCES)))
            if "sources" in fields
            else SOURCES,
            src=src,
            strip_trailers=tuple(
                self.texts(
                    fields.get("strip_trailers"), "strip_trailers", rules.like(rules.TRAILER)
                )
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
            url=self.text(fields.get("url"), "upstream.url", rules.url_fault) or DEFAULT_URL,
            branch=self.text(fields.get("branch"), "upstream.branch", rules.ref_fault) or "master",
            repo=_clone(self.root, repo) if repo else None,
        )

    def base(self, node: Node | None) -> Base:
        if node is not None and not isinstance(node, MapNode):
            return Base(self.text(node, "base", rules.like(rules.WORD)))
        fields = self.fields(node, "base", ("name", "commit", "tree", "snapshot"))
        if node is not None and "name" not in fields:
            self.fault(node, "base.name is missing")
        an_id = rules.like(rules.ID, "is not an id of 40 lower-case hex digits")
        snapshot = rules.like(rules.SNAPSHOT, "is not like pypi:NAME==VERSION or npm:NAME@VERSION")
        return Base(
            name=self.text(fields.get("name"), "base.name", rules.like(rules.WORD)),
            commit=self.text(fields.get("commit"), "base.commit", an_id) or None,
            tree=self.text(fields.get("tree"), "base.tree", an_id) or None,
            snapshot=self.text(fields.get("snapshot"), "base.snapshot", snapshot) or None,
        )

    def src(self, node: Node | None) -> tuple[tuple[str, str], ...]:
        """Directory pairs; no two of them may meet upstream."""
        mapping: dict[str, str] = {}
        for key, value in self.pairs(node, "src"):
            own = self.text(key, "src:", rules.path_fault)
            up = self.text(value, f"src: {shown(key.text)}:", rules.path_fault)
            own, up = normpath(own), normpath(up)
            if own in mapping or up in mapping.values():
                self.fault(key, f"src: {shown(own)} or {shown(up)} is mapped twice")
            elif own != "." and up != ".":
                mapping[own] = up
        return tuple(mapping.items())

    def patches(self, node: Node | None, src: tuple[tuple[str, str], ...]) -> tuple[Patch, ...]:
        found: dict[str, Patch] = {}
        folded: dict[str, tuple[Patch, int]] = {}
        owners: dict[str, tuple[str, str]] = {}
        needs: list[tuple[Patch, Node, str]] = []
        for number, item in enumerate(self.items(node, "patches"), 1):
            patch, places = self.patch(item, f"entry {number}")
            if patch is None:
                continue
            keys = (patch.name.casefold(), "/" + patch.file.casefold())
            other = next((folded[key] for key in keys if key in folded), None)
            if other is not None:
                self.fault(item, _clash(patch, item.start.line, *other))
                continue
            folded.update(dict.fromkeys(keys, (patch, item.start.line)))
            found[patch.name] = patch
            for file, place in places.get("files", {}).items():
                self.own(patch, file, place, src, owners)
            needs += [(patch, place, name) for name, place in places.get("needs", {}).items()]
        self.order(found, needs)
        return tuple(found.values())

    def patch(self, node: Node, what: str) -> tuple[Patch | None, dict[str, dict[str, Node]]]:
        """One entry, and the places of its files and needs."""
        if isinstance(node, TextNode) and not node.null and (node.style or not node.text.isdigit()):
            name = self.text(node, f"{what}: name", rules.name_fault)
            fields: dict[str, Node] = {}
            file = f"{name}.patch"
        elif isinstance(node, MapNode):
            fields = self.fields(node, what, PATCH_KEYS)
            name, file = self.name_and_file(node, fields, what)
        else:
            self.fault(node, f"{what} must be a name or a mapping")
            return None, {}
        what = f"{name or what}:"
        files = self.texts(fields.get("files"), f"{what} files", rules.owned_fault)
        needs = self.texts(fields.get("needs"), f"{what} needs")
        ops = self.texts(fields.get("ops"), f"{what} ops", rules.like(rules.OP))
        state = self.text(fields.get("state"), f"{what} state", rules.one_of(STATES)) or "draft"
        landed = self.text(fields.get("landed"), f"{what} landed") or None
        held = self.text(fields.get("held"), f"{what} held", rules.like(rules.WORD)) or None
        pr = self.text(
            fields.get("pr"),
            f"{what} pr",
            rules.like(rules.PR, "is not a number or an https address"),
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
            held=held,
        ), {"files": files, "needs": needs}

    def name_and_file(self, node: Node, fields: dict[str, Node], what: str) -> tuple[str, str]:
        """A name and its file, each made from the other if need be; '' with a problem noted."""
        if "name" not in fields and "file" not in fields:
            self.fault(node, f"{what} has neither name nor file")
            return "", ""
        name = self.text(fields.get("name"), f"{what}: name", rules.name_fault)
        if "file" not in fields:
            return name, f"{name}.patch"
        file = self.text(fields["file"], f"{what}: file", rules.file_fault)
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
                if len(self.problems) < MAX_SHOWN:
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
            name = self.text(fields.get("name"), f"{what}: name", rules.ref_fault)
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
            branch = self.text(fields.get("branch"), f"{what}: branch", rules.ref_fault) or name
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
            name = self.text(key, "target", rules.like(rules.TARGET))
            options: dict[str, Option] = {}
            for option, setting in self.pairs(value, f"target {name}"):
                self.text(option, f"target {name}: key", rules.option_fault)
                if not is_null(setting):
                    options[option.text] = self.option(setting, f"target {name}: {option.text}")
            targets.append(Target(name, options))
        return tuple(targets)

    def option(self, node: Node, what: str) -> Option:
        """A list of texts, a whole number, or text."""
        key = what.rpartition(" ")[2]
        if isinstance(node, ListNode) or key == "ops":
            return tuple(self.texts(node, what, rules.like(rules.OP) if key == "ops" else None))
        text = self.text(node, what)
        plain = isinstance(node, TextNode) and not node.style
        if plain and re.fullmatch(r"0|[1-9][0-9]{0,8}", text):
            return int(text)
        if key in ("jobs", "timeout"):
            self.fault(node, f"{what} must be a whole number")
        return text

    def exists(self, place: Node, path: str, what: str) -> None:
        """A path must be a regular file, in folders that stay in the repository."""
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
        elif link:
            self.fault(place, f"{what} is a link: the file itself has to be there")
        elif not stat.S_ISREG(mode):
            self.fault(place, f"{what} is not a regular file")

    def stays_folder(self, folder: str) -> bool:
        if folder not in self.inside:
            self.inside[folder] = self.stays(folder)
        return self.inside[folder]

    def stays(self, path: str) -> bool:
        root = os.path.realpath(self.root)
        return Path(os.path.realpath(path)).is_relative_to(root)


def _clash(patch: Patch, line: int, other: Patch, before: int) -> str:
    """What is wrong with an entry that an earlier one forbids."""
    if patch.file == other.file or patch.name == other.name:
        same = patch.file if patch.file == other.file else patch.name
        return f"{same} is listed twice (lines {before} and {line})"
    return f"{patch.name} differs from {other.name} (line {before}) only in case"


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
