"""Snapshots of upstream from package registries: downloaded once, kept in the user's cache.

A pack is kept under the id of its tree, and linked into the object stores that need it.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from hexpatch import catalogue, objects, proc, shallow, workspace
from hexpatch.catalogue import Entry, Spec
from hexpatch.errors import NAME_A_CLONE, HexpatchError
from hexpatch.repo import Repo

Say = Callable[[str], None]

STALE_SECONDS = 24 * 3600
TELL_SECONDS = 2.0

_WAY_OUT = f"check the network and the proxy settings, or {NAME_A_CLONE}"


def cache_dir() -> Path:
    """The user's cache: $HEXPATCH_CACHE, $XDG_CACHE_HOME/hexpatch or ~/.cache/hexpatch."""
    if own := os.environ.get("HEXPATCH_CACHE"):
        return Path(own).expanduser().absolute()
    general = os.environ.get("XDG_CACHE_HOME", "")
    if Path(general).is_absolute():
        return Path(general, "hexpatch")
    return Path.home() / ".cache" / "hexpatch"


# -- downloads ---------------------------------------------------------------------------------


class Client(Protocol):
    """Says which command downloads a package into a directory."""

    def argv(self, spec: Spec, integrity: str | None, into: Path, scratch: Path) -> list[str]:
        """The command; `scratch` is for its own files. HexpatchError where it can't run."""
        ...


class PackageClients:
    """npm and pip, as the user has set them up."""

    def argv(self, spec: Spec, integrity: str | None, into: Path, scratch: Path) -> list[str]:
        """`npm pack` or `pip download`."""
        return (self._npm if spec.kind == "npm" else self._pip)(spec, integrity, into, scratch)

    def _npm(self, spec: Spec, integrity: str | None, into: Path, scratch: Path) -> list[str]:
        from shutil import which

        npm = which("npm")
        if npm is None:
            raise HexpatchError(
                f"{spec.label} comes through npm, which is not installed",
                f"install npm, pick a PyPI snapshot, or {NAME_A_CLONE}",
            )
        argv = [npm, "pack", spec.requirement, "--pack-destination", str(into), "--json"]
        return [*argv, "--ignore-scripts", "--no-update-notifier", "--cache", str(scratch / "npm")]

    def _pip(self, spec: Spec, integrity: str | None, into: Path, scratch: Path) -> list[str]:
        from importlib.util import find_spec

        # pip asks a source archive for its metadata; with build isolation that compiles CMake
        for module in ("pip", "scikit_build_core"):
            if find_spec(module) is None:
                raise HexpatchError(
                    f"{spec.label} comes through pip with scikit-build-core, "
                    f"and {module} is not installed for {sys.executable}",
                    f"{sys.executable} -m ensurepip; "
                    f"{sys.executable} -m pip install scikit-build-core",
                )
        argv = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-binary", ":all:"]
        argv += ["--no-build-isolation", "--no-cache-dir", "--disable-pip-version-check"]
        line = spec.requirement
        if integrity is not None:
            # with hashes pip checks the file before it runs anything that is in it
            line += f" --hash={integrity}"
            argv.append("--require-hashes")
        wanted = scratch / "requirements.txt"
        wanted.write_text(line + "\n")
        return [*argv, "-r", str(wanted), "-d", str(into)]


class _Died(Exception):
    """The client ended without a file; the text is the last of what it said."""


class Cache:
    """Packs by tree id, filled by downloads. One process at a time fills one entry."""

    def __init__(
        self,
        say: Say,
        *,
        client: Client | None = None,
        offline: bool = False,
        directory: Path | None = None,
    ) -> None:
        self.say = say
        self.offline = offline
        self.directory = (directory or cache_dir()) / "snapshots"
        self._client = client or PackageClients()

    def pack(self, tree: str) -> Path | None:
        """The pack of a tree, whole and with its index; a damaged one is thrown away."""
        pack = self.directory / f"{tree}.pack"
        if not (pack.exists() and pack.with_suffix(".idx").exists()):
            return None
        if _intact(pack):
            return pack
        self.say(f"the cached snapshot {pack} is damaged and is fetched again")
        pack.with_suffix(".idx").unlink(missing_ok=True)
        pack.unlink(missing_ok=True)
        return None

    def holds(self, tree: str) -> bool:
        """Is there a pack of this tree? (Its content is not looked at.)"""
        return all((self.directory / f"{tree}.{end}").exists() for end in ("pack", "idx"))

    def tree_of(self, spec: Spec) -> str | None:
        """The tree of a release: from the catalogue, or from an earlier download."""
        entry = catalogue.by_spec(spec)
        if entry is not None:
            return entry.tree
        with contextlib.suppress(OSError):
            text = (self.directory / f"{spec.name}.tree").read_text().strip()
            if re.fullmatch(r"[0-9a-f]{40}", text):
                return text
        return None

    def fetch(self, spec: Spec) -> tuple[str, Path]:
        """(tree, pack) of a release; downloaded once, by whoever comes first."""
        entry = catalogue.by_spec(spec)
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            with self._lock(entry.tree if entry else spec.name):
                tree = self.tree_of(spec)
                pack = self.pack(tree) if tree else None
                if tree is None or pack is None:
                    tree, pack = self._fill(entry.spec if entry else spec, entry)
                return tree, pack
        except OSError as error:
            raise HexpatchError(
                f"the snapshot cache {self.directory} can't be used: {error}",
                "free some space, or set HEXPATCH_CACHE to another directory",
            ) from None

    @contextlib.contextmanager
    def _lock(self, key: str) -> Iterator[None]:
        with (self.directory / f"{key}.lock").open("ab") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self.say("another run is fetching this snapshot: waiting for it")
                fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _fill(self, spec: Spec, entry: Entry | None) -> tuple[str, Path]:
        from tempfile import TemporaryDirectory

        from hexpatch.archive import pack_archive  # tarfile and what it needs

        if self.offline:
            raise HexpatchError(
                f"offline: the snapshot {spec.label} is not in the cache {self.directory}",
                "run once without --offline and HEXPATCH_OFFLINE",
            )
        if entry is None:
            self.say(f"{spec} is not in the catalogue: only the package client checked its sum")
        self._sweep()
        with TemporaryDirectory(
            prefix=f"tmp-{os.getpid()}-", dir=self.directory, ignore_cleanup_errors=True
        ) as scratch:
            archive = self._download(spec, entry, Path(scratch))
            made, tree = pack_archive(archive, spec.kind, Path(scratch))
            if entry is not None and tree != entry.tree:
                raise HexpatchError(f"{archive.name}: its tree is {tree}, expected {entry.tree}")
            pack = self._keep(made, tree)
        if entry is None:
            note = self.directory / f"{spec.name}.tree"
            workspace.write_atomic(note, f"{tree}\n".encode())
        return tree, pack

    def _keep(self, made: Path, tree: str) -> Path:
        pack = self.directory / f"{tree}.pack"
        for file in (made, made.with_suffix(".idx")):
            file.chmod(0o444)
            file.replace(pack.with_suffix(file.suffix))
        return pack

    def _sweep(self) -> None:
        """Remove what killed runs left: their process is gone, or they are a day old."""
        from shutil import rmtree

        for left in self.directory.glob("tmp-*"):
            owner = left.name.split("-")[1]
            with contextlib.suppress(OSError):
                old = time.time() - left.stat().st_mtime > STALE_SECONDS
                if old or not (owner.isdigit() and _alive(int(owner))):
                    rmtree(left, ignore_errors=True)

    # -- one download ----------------------------------------------------------------------

    def _download(self, spec: Spec, entry: Entry | None, scratch: Path) -> Path:
        """The archive, its sum checked. A download that dies is started once more."""
        size = f" ({entry.size / 1e6:.0f} MB)" if entry else ""
        self.say(f"downloading {spec.label}{size} ...")
        started = time.monotonic()
        try:
            archive = self._once(spec, entry, scratch / "1")
        except _Died as first:
            self.say(f"the download of {spec.label} died ({_last(first)}): trying once more")
            try:
                archive = self._once(spec, entry, scratch / "2")
            except _Died as second:
                raise HexpatchError(
                    f"{spec.label} can't be downloaded; {_tool(spec)} said:\n{second}", _WAY_OUT
                ) from None
        if entry is not None:
            got = catalogue.digest(archive, entry.integrity)
            if got != entry.integrity:
                raise _wrong_sum(spec, f"{got}, expected {entry.integrity}")
        took = time.monotonic() - started
        self.say(f"downloaded {spec.label}: {archive.stat().st_size / 1e6:.1f} MB in {took:.1f} s")
        return archive

    def _once(self, spec: Spec, entry: Entry | None, scratch: Path) -> Path:
        into = scratch / "out"
        into.mkdir(parents=True)
        argv = self._client.argv(spec, entry.integrity if entry else None, into, scratch)
        log = scratch / "log"
        status = self._watch(argv, scratch, log, spec)
        said = proc.tail(log, 8).strip() or "(nothing)"
        if "DO NOT MATCH THE HASHES" in said or "EINTEGRITY" in said:
            raise _wrong_sum(spec, said)
        archives = [p for p in into.iterdir() if p.name.endswith((".tgz", ".tar.gz"))]
        if status != 0 or len(archives) != 1:
            end = f"signal {-status}" if status < 0 else f"exit status {status}"
            raise _Died(f"{said}\n({end})")
        return archives[0]

    def _watch(self, argv: Sequence[str], scratch: Path, log: Path, spec: Spec) -> int:
        """Run a client with its temporary files in `scratch`; tell how much is there so far."""
        env = {**os.environ, "TMPDIR": str(scratch), "NO_COLOR": "1"}
        with log.open("wb") as sink:
            child = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                env=env,
                start_new_session=True,
            )
            told = ""
            try:
                while True:
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        return child.wait(TELL_SECONDS)
                    line = f"  {spec.label}: {_bytes_so_far(scratch) / 1e6:.0f} MB"
                    if line != told:
                        self.say(line)
                    told = line
            finally:
                if child.poll() is None:
                    proc.kill_group(child)
                    child.wait()


def _tool(spec: Spec) -> str:
    return "npm" if spec.kind == "npm" else "pip"


def _last(died: _Died) -> str:
    lines = str(died).splitlines()
    return "; ".join(lines[-2:])


def _wrong_sum(spec: Spec, detail: str) -> HexpatchError:
    return HexpatchError(
        f"the archive of {spec.label} is not the one the catalogue knows: {detail}",
        "a mirror or proxy may serve another file; nothing of it was used",
    )


def _bytes_so_far(directory: Path) -> int:
    """Size of the largest file: the archive as it grows (pip also unpacks it there, to look)."""
    largest = 0
    for parent, _, names in os.walk(directory):
        for name in names:
            with contextlib.suppress(OSError):
                largest = max(largest, Path(parent, name).stat().st_size)
    return largest


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _intact(pack: Path) -> bool:
    """Do pack and index end in their own sums, and the index in the sum of this pack?"""
    trailers = []
    for file in (pack, pack.with_suffix(".idx")):
        made = hashlib.sha1(usedforsecurity=False)
        with file.open("rb") as source:
            left = file.stat().st_size - 20
            while left > 0 and (chunk := source.read(min(left, 1 << 20))):
                left -= len(chunk)
                made.update(chunk)
            if left != 0 or source.read() != made.digest():
                return False
        trailers.append(made.digest())
    with pack.with_suffix(".idx").open("rb") as source:
        source.seek(-40, os.SEEK_END)
        return source.read(20) == trailers[0]


# -- pack -> store -----------------------------------------------------------------------------


def install(repo: Repo, entry: Entry, cache: Cache) -> str:
    """Put an entry's tree and its commit into a store. The commit's id."""
    if not repo.present([entry.tree]):
        link_pack(repo, cache, entry.spec)
    return adopt(repo, entry)


def link_pack(repo: Repo, cache: Cache, spec: Spec) -> str:
    """Put a release's objects into a store. Its tree id."""
    tree, pack = cache.fetch(spec)
    with pack.open("rb") as source:
        source.seek(-20, os.SEEK_END)
        name = f"pack-{source.read().hex()}"
    directory = repo.git_dir / "objects" / "pack"
    directory.mkdir(parents=True, exist_ok=True)
    # .keep: gc leaves the pack alone, so that its blocks stay shared with the cache
    (directory / f"{name}.keep").write_text("shared with hexpatch's snapshot cache\n")
    for suffix in (".pack", ".idx"):
        _link(pack.with_suffix(suffix), directory / f"{name}{suffix}")
    repo.close()
    if not repo.present([tree]):
        for suffix in (".idx", ".pack", ".keep"):
            (directory / f"{name}{suffix}").unlink(missing_ok=True)
        pack.unlink(missing_ok=True)
        raise HexpatchError(
            f"the cached snapshot of {spec.label} doesn't hold its tree {tree}; it was removed",
            "run again: it is downloaded anew",
        )
    return tree


def _link(source: Path, target: Path) -> None:
    from shutil import copyfile

    part = target.with_name(f"tmp_{target.name}.{os.getpid()}")
    part.unlink(missing_ok=True)
    try:
        os.link(source, part)
    except OSError:  # another file system, or one without hard links
        copyfile(source, part)
        part.chmod(0o444)
    part.replace(target)


def adopt(repo: Repo, entry: Entry) -> str:
    """Give a tree that is in the store its commit in the line of snapshots. The commit's id."""
    commit = catalogue.commit_id(entry)
    ref = f"refs/snapshots/{entry.name}"
    if repo.ref(ref) == commit:
        return commit
    shallow.write_alone(repo, commit, catalogue.commit_data(entry))
    shallow.mend(repo)
    repo.update_refs({ref: commit})
    return commit


def adopt_unlisted(repo: Repo, name: str, tree: str) -> str:
    """The parentless commit of a tree that the catalogue doesn't have."""
    data = catalogue.undated_commit(name, tree)
    commit = objects.object_id("commit", data)
    repo.write_objects([("commit", data)])
    repo.update_refs({f"refs/bases/{tree}": commit})
    return commit


def adopt_upstream(repo: Repo, entry: Entry) -> str:
    """Upstream's own commit of an entry's tree, without its history."""
    assert entry.upstream is not None
    shallow.write_alone(repo, entry.upstream, entry.upstream_object)
    shallow.mend(repo)
    repo.update_refs({f"refs/upstream/commits/{entry.upstream}": entry.upstream})
    return entry.upstream


class Known(NamedTuple):
    """A catalogue entry as `hexpatch` lists it."""

    entry: Entry
    installed: bool
    cached: bool


def known(repo: Repo | None, cache: Cache) -> tuple[Known, ...]:
    """The catalogue, with what is in the store and in the cache."""
    held = repo.refs("refs/snapshots/") if repo else {}
    return tuple(
        Known(e, f"refs/snapshots/{e.name}" in held, cache.holds(e.tree))
        for e in catalogue.entries()
    )
