"""What a series is: upstream and base, patches in their order, groups, targets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, TypeAlias

from hexpatch.errors import HexpatchError, UsageError
from hexpatch.workspace import read_bytes
from hexpatch.yamltree import shown, similar

DEFAULT_URL = "https://github.com/ggml-org/llama.cpp.git"
SOURCES = ("clone", "remote", "snapshot")

Option: TypeAlias = str | int | tuple[str, ...]


class Base(NamedTuple):
    """The upstream commit the series stands on: `name` for people, the ids lock content."""

    name: str
    commit: str | None = None
    tree: str | None = None
    snapshot: str | None = None


class Upstream(NamedTuple):
    """Where upstream lives; `repo` is the user's own clone, absolute."""

    url: str = DEFAULT_URL
    branch: str = "master"
    repo: Path | None = None


class Patch(NamedTuple):
    """One entry. `file` is relative to patches/, `files` are the owned files in src/.

    `held` is the base that the patch last lay on, where a rebase has left it out since.
    """

    name: str
    file: str
    why: str = ""
    files: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    ops: tuple[str, ...] = ()
    state: str = "draft"
    pr: str | None = None
    landed: str | None = None
    held: str | None = None

    @property
    def out(self) -> str:
        """Why it is not part of the stack: hold, landed, or nothing."""
        if self.state == "hold" or self.held is not None:
            return "hold"
        return "landed" if self.state == "landed" or self.landed is not None else ""


class Group(NamedTuple):
    """Patches that become one pull request."""

    name: str
    title: str
    patches: tuple[str, ...]
    branch: str


class Target(NamedTuple):
    """What is built and run, with its options."""

    name: str
    options: Mapping[str, Option] = {}


class _Said(NamedTuple):
    root: Path
    upstream: Upstream
    base: Base
    sources: tuple[str, ...] = SOURCES
    src: tuple[tuple[str, str], ...] = ()
    strip_trailers: tuple[str, ...] = ()
    patches: tuple[Patch, ...] = ()
    groups: tuple[Group, ...] = ()
    targets: tuple[Target, ...] = ()


class Series(_Said):
    """A valid series.yaml. `src` maps directories of src/ to upstream's."""

    def patch(self, name: str) -> Patch:
        """The patch of this name, or an error that knows a similar one."""
        found = self._by_name.get(name)
        if found is None:
            hint = similar(name, self._by_name) or "`hexpatch series` lists the patches"
            raise UsageError(f"no patch named {shown(name)}", hint)
        return found

    @property
    def active(self) -> tuple[Patch, ...]:
        """The patches of the stack: neither landed upstream nor on hold."""
        return tuple(patch for patch in self.patches if not patch.out)

    def read(self, path: str) -> bytes:
        """A file of the series, by its path below `root`."""
        return read_bytes(f"{self.root}/{path}")

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


def _tail(path: str, prefix: str) -> str | None:
    """What is left of a path below a prefix; None when it isn't below it."""
    return path[len(prefix) :] if path == prefix or path.startswith(prefix + "/") else None
