"""Snapshots of upstream from package registries: archive -> git pack -> object store.

Nothing of an archive is unpacked to disk: its files go straight into git objects, and only those
that belong to the tree. A pack is kept in the user's cache under the id of its tree.
"""

from __future__ import annotations

import contextlib
import fcntl
import gzip
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Protocol

from hexpatch import catalogue, objects, proc
from hexpatch.catalogue import Entry, Spec
from hexpatch.errors import HexpatchError
from hexpatch.repo import Repo, init_bare

Say = Callable[[str], None]

FILE_LIMIT = 512 << 20
TOTAL_LIMIT = 4 << 30
STALE_SECONDS = 24 * 3600
TELL_SECONDS = 2.0
# a lookup must not make a partial store ask its remote (git >= 2.39.4)
NO_LAZY_FETCH = {"GIT_NO_LAZY_FETCH": "1"}

_WAY_OUT = "check the network and the proxy settings, or name a clone of llama.cpp with --repo PATH"
_BUNDLE = "package/llama/gitRelease.bundle"
_VENDORED = re.compile(r"([^/]+)/vendor/llama\.cpp/(.+)", re.DOTALL)
# code points that HFS+ leaves out of names: ".g\u200cit" is ".git" there
_IGNORED_BY_HFS = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")


def cache_dir() -> Path:
    """The user's cache: $HEXPATCH_CACHE, $XDG_CACHE_HOME/hexpatch or ~/.cache/hexpatch."""
    if own := os.environ.get("HEXPATCH_CACHE"):
        return Path(own).expanduser().absolute()
    general = os.environ.get("XDG_CACHE_HOME", "")
    if Path(general).is_absolute():
        return Path(general, "hexpatch")
    return Path.home() / ".cache" / "hexpatch"


# -- archive -> pack ---------------------------------------------------------------------------


def pack_archive(archive: Path, kind: str, scratch: Path) -> tuple[Path, str]:
    """(pack with its .idx beside it, tree id) of an npm or PyPI archive."""
    try:
        if kind == "npm":
            return _pack_bundle(archive, scratch)
        return _pack_sdist(archive, scratch)
    except (tarfile.TarError, zlib.error, EOFError) as error:
        raise HexpatchError(f"{archive.name} is truncated or damaged: {error}") from None
    except OSError as error:
        if error.errno is not None:
            raise
        raise HexpatchError(f"{archive.name} is truncated or damaged: {error}") from None


def _members(archive: Path) -> Iterator[tuple[tarfile.TarFile, tarfile.TarInfo]]:
    """Members in order, each checked by its header before any of its data is used."""
    total = 0
    with gzip.open(archive) as plain, tarfile.open(fileobj=plain, mode="r|") as tar:
        for member in tar:
            tar.members = []  # type: ignore[attr-defined]  # else it keeps them all
            total += member.size
            _check_header(archive, member)
            if total > TOTAL_LIMIT:
                raise _refused(archive, f"it unpacks to more than {TOTAL_LIMIT >> 30} GB")
            yield tar, member
        while total < TOTAL_LIMIT and (rest := plain.read(1 << 20)):
            total += len(rest)  # to the end: gzip's own sum is checked there


def _check_header(archive: Path, member: tarfile.TarInfo) -> None:
    if member.name.startswith("/"):
        raise _refused(archive, "absolute name", member.name)
    if ".." in member.name.split("/"):
        raise _refused(archive, '".." in a name', member.name)
    if member.size > FILE_LIMIT:
        raise _refused(archive, f"a file of more than {FILE_LIMIT >> 20} MB", member.name)
    if not (member.isreg() or member.isdir() or member.issym() or member.islnk()):
        raise _refused(archive, "neither file, directory nor link", member.name)


def _refused(archive: Path, why: str, name: str = "") -> HexpatchError:
    return HexpatchError(f"{archive.name} is refused: {why}" + (f": {name!r}" if name else ""))


def _data(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    source = tar.extractfile(member)
    assert source is not None
    data = source.read()
    if len(data) != member.size:
        raise EOFError(f"{member.name} ends early")
    return data


def _index(archive: Path, repo: Repo, pack: Path) -> Path:
    """Index a pack; every link in it is followed and every tree checked as fsck does."""
    idx = pack.with_suffix(".idx")
    try:
        repo.git("index-pack", "--strict", "--no-rev-index", "-o", str(idx), str(pack))
    except HexpatchError as error:
        raise HexpatchError(f"{archive.name} is truncated or damaged: {error.message}") from None
    return pack


def _pack_bundle(archive: Path, scratch: Path) -> tuple[Path, str]:
    """npm: the git bundle inside holds one ref, to a parentless commit, and all its objects."""
    repo = init_bare(scratch / "git")
    pack = repo.git_dir / "objects" / "pack" / "pack-snapshot.pack"
    pack.parent.mkdir(parents=True, exist_ok=True)
    commit = None
    for tar, member in _members(archive):
        if member.name != _BUNDLE:
            continue
        if commit is not None:
            raise _refused(archive, "two members of one name", member.name)
        if not member.isreg():
            raise _refused(archive, "not a regular file", member.name)
        source = tar.extractfile(member)
        assert source is not None
        commit = _bundle_head(archive, source)
        with pack.open("wb") as sink:
            shutil.copyfileobj(source, sink, 1 << 20)
    if commit is None:
        raise _refused(archive, f"it has no {_BUNDLE}")
    with repo:
        _index(archive, repo, pack)
        parts = repo.commit(commit)
    if parts.parents:
        raise _refused(archive, "the commit in its bundle has parents")
    return pack, parts.tree


def _bundle_head(archive: Path, source: IO[bytes]) -> str:
    """Read a bundle's header (gitformat-bundle(5)); the pack follows."""
    signature = source.readline(64)
    if signature not in (b"# v2 git bundle\n", b"# v3 git bundle\n"):
        raise _refused(archive, "its bundle has no git bundle header")
    heads: list[str] = []
    while (text := source.readline(4096)) not in (b"\n", b""):
        if text.startswith(b"@") and signature.startswith(b"# v3"):
            if text != b"@object-format=sha1\n":
                raise _refused(archive, f"its bundle needs {text.decode('latin-1').strip()}")
        elif found := re.fullmatch(rb"([0-9a-f]{40}) \S+\n", text):
            heads.append(found[1].decode())
        else:
            raise _refused(archive, "its bundle is not complete in itself")
    if len(heads) != 1:
        raise _refused(archive, f"its bundle has {len(heads)} refs instead of one")
    return heads[0]


@dataclass
class _Vendored:
    """What is below vendor/llama.cpp/ so far: path -> (mode, blob id)."""

    files: dict[bytes, tuple[int, str]] = field(default_factory=dict)
    directories: set[bytes] = field(default_factory=set)
    top: str | None = None


def _pack_sdist(archive: Path, scratch: Path) -> tuple[Path, str]:
    """PyPI: the vendored files, read twice (names and ids, then data), become one pack."""
    found = _Vendored()
    for tar, member, path in _vendored(archive):
        _add(archive, found, tar, member, path)
    if not found.files:
        raise _refused(archive, "it has no files in vendor/llama.cpp/")
    root, trees = build_trees(found.files)
    blobs = {oid for _, oid in found.files.values()}
    pack = scratch / "git" / "objects" / "pack" / "pack-snapshot.pack"
    repo = init_bare(scratch / "git")
    pack.parent.mkdir(parents=True, exist_ok=True)

    def emit() -> Iterator[tuple[str, bytes]]:
        missing = set(blobs)
        for tar, member, _ in _vendored(archive):
            if not member.isdir() and not member.islnk():
                data = _content(tar, member)
                oid = objects.object_id("blob", data)
                if oid in missing:
                    missing.remove(oid)
                    yield "blob", data
        for tree in trees.values():
            yield "tree", tree

    with pack.open("wb") as sink:
        for chunk in objects.pack(emit(), len(blobs) + len(trees)):
            sink.write(chunk)
    return _index(archive, repo, pack), root


def _vendored(archive: Path) -> Iterator[tuple[tarfile.TarFile, tarfile.TarInfo, bytes]]:
    """Members below */vendor/llama.cpp/ with their path there, but for the submodule's `.git`."""
    top = None
    for tar, member in _members(archive):
        match = _VENDORED.fullmatch(member.name)
        if match is None:
            continue
        if top not in (None, match[1]):
            raise _refused(archive, "two top directories", member.name)
        top = match[1]
        if match[2] == ".git" and member.isreg():
            continue
        path = match[2].encode("utf-8", "surrogateescape")
        if not safe_path(path):
            raise _refused(archive, "a name git doesn't allow", member.name)
        yield tar, member, path


def _content(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    if member.issym():
        return member.linkname.encode("utf-8", "surrogateescape")
    return _data(tar, member)


def _add(
    archive: Path, found: _Vendored, tar: tarfile.TarFile, member: tarfile.TarInfo, path: bytes
) -> None:
    parents = [path[:at] for at, byte in enumerate(path) if byte == 0x2F]
    if any(p in found.files for p in parents):
        raise _refused(archive, "a name below a file", member.name)
    found.directories.update(parents)
    if member.isdir():
        if path in found.files:
            raise _refused(archive, "two members of one name", member.name)
        found.directories.add(path)
        return
    if path in found.files or path in found.directories:
        raise _refused(archive, "two members of one name", member.name)
    if member.islnk():
        match = _VENDORED.fullmatch(member.linkname)
        target = found.files.get(match[2].encode("utf-8", "surrogateescape")) if match else None
        if target is None or target[0] == objects.LINK:
            raise _refused(archive, "a hard link that leads out of the tree", member.name)
        found.files[path] = target
        return
    data = _content(tar, member)
    if member.issym():
        if not safe_link(path, data):
            raise _refused(archive, "a link that leads out of the tree", member.name)
        mode = objects.LINK
    else:
        mode = objects.EXECUTABLE if member.mode & 0o100 else objects.FILE
    found.files[path] = mode, objects.object_id("blob", data)


def safe_path(path: bytes) -> bool:
    """A relative path that git would store: no empty, `.`, `..` or `.git` component, no NUL."""
    return b"\0" not in path and all(_safe_name(part) for part in path.split(b"/"))


def _safe_name(part: bytes) -> bool:
    text = _IGNORED_BY_HFS.sub("", part.decode("utf-8", "surrogateescape")).lower()
    # NTFS: trailing dots and blanks and ":stream" don't count, "\" separates, GIT~1 is .git
    plain = [p.split(":")[0].rstrip(". ") for p in text.split("\\")]
    return part not in (b"", b".", b"..") and not {".git", "git~1", "..", ""} & set(plain)


def safe_link(path: bytes, target: bytes) -> bool:
    """A symbolic link whose target stays in the tree: `..` only in front, and not too many."""
    parts = target.split(b"/")
    ups = 0
    while ups < len(parts) and parts[ups] == b"..":
        ups += 1
    rest = b"/".join(parts[ups:])
    return ups <= path.count(b"/") and (safe_path(rest) if rest else ups > 0)


def build_trees(entries: dict[bytes, tuple[int, str]]) -> tuple[str, dict[str, bytes]]:
    """(root id, id -> bytes of every tree) for path -> (mode, blob id)."""
    levels: dict[bytes, dict[bytes, tuple[int, str]]] = {b"": {}}
    for path, entry in entries.items():
        directory, _, name = path.rpartition(b"/")
        levels.setdefault(directory, {})[name] = entry
        while directory:
            directory = directory.rpartition(b"/")[0]
            levels.setdefault(directory, {})
    trees: dict[str, bytes] = {}
    oid = ""
    for directory in sorted(levels, key=lambda d: (d != b"", d.count(b"/")), reverse=True):
        data = objects.format_tree(levels[directory])
        oid = objects.object_id("tree", data)
        trees[oid] = data
        if directory:
            parent, _, name = directory.rpartition(b"/")
            levels[parent][name] = objects.TREE, oid
    return oid, trees


# -- downloads ---------------------------------------------------------------------------------


class Client(Protocol):
    """Says which command downloads a package into a directory."""

    def argv(self, spec: Spec, integrity: str | None, into: Path, scratch: Path) -> list[str]:
        """The command; `scratch` is for its own files. HexpatchError where it can't run."""
        ...


@dataclass(frozen=True)
class PackageClients:
    """npm and pip, as the user has set them up."""

    def argv(self, spec: Spec, integrity: str | None, into: Path, scratch: Path) -> list[str]:
        """`npm pack` or `pip download`."""
        return (self._npm if spec.kind == "npm" else self._pip)(spec, integrity, into, scratch)

    def _npm(self, spec: Spec, integrity: str | None, into: Path, scratch: Path) -> list[str]:
        npm = shutil.which("npm")
        if npm is None:
            raise HexpatchError(
                f"{spec.label} comes through npm, which is not installed",
                "install npm, pick a PyPI snapshot, or name a clone of llama.cpp with --repo PATH",
            )
        argv = [npm, "pack", spec.requirement, "--pack-destination", str(into), "--json"]
        return [*argv, "--ignore-scripts", "--no-update-notifier", "--cache", str(scratch / "npm")]

    def _pip(self, spec: Spec, integrity: str | None, into: Path, scratch: Path) -> list[str]:
        # pip asks a source archive for its metadata; with build isolation that compiles CMake
        for module in ("pip", "scikit_build_core"):
            if importlib.util.find_spec(module) is None:
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
        if self.offline:
            raise HexpatchError(
                f"offline: the snapshot {spec.label} is not in the cache {self.directory}",
                "run once without --offline and HEXPATCH_OFFLINE",
            )
        if entry is None:
            self.say(f"{spec} is not in the catalogue: only the package client checked its sum")
        self._sweep()
        with tempfile.TemporaryDirectory(
            prefix=f"tmp-{os.getpid()}-", dir=self.directory, ignore_cleanup_errors=True
        ) as scratch:
            archive = self._download(spec, entry, Path(scratch))
            made, tree = pack_archive(archive, spec.kind, Path(scratch))
            if entry is not None and tree != entry.tree:
                raise HexpatchError(f"{archive.name}: its tree is {tree}, expected {entry.tree}")
            pack = self._keep(made, tree)
        if entry is None:
            note = self.directory / f"{spec.name}.tree"
            _write(note, tree + "\n")
        return tree, pack

    def _keep(self, made: Path, tree: str) -> Path:
        pack = self.directory / f"{tree}.pack"
        for file in (made, made.with_suffix(".idx")):
            file.chmod(0o444)
            file.replace(pack.with_suffix(file.suffix))
        return pack

    def _sweep(self) -> None:
        """Remove what killed runs left: their process is gone, or they are a day old."""
        for left in self.directory.glob("tmp-*"):
            owner = left.name.split("-")[1]
            with contextlib.suppress(OSError):
                old = time.time() - left.stat().st_mtime > STALE_SECONDS
                if old or not (owner.isdigit() and _alive(int(owner))):
                    shutil.rmtree(left, ignore_errors=True)

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
            try:
                while True:
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        return child.wait(TELL_SECONDS)
                    self.say(f"  {spec.label}: {_bytes_so_far(scratch) / 1e6:.0f} MB")
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


def _write(path: Path, text: str) -> None:
    """Whole, then renamed."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    part.write_text(text)
    part.replace(path)


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


def present(repo: Repo, oids: Sequence[str]) -> set[str]:
    """Which objects are there, without asking a promisor remote for the others."""
    if not oids:
        return set()
    args = ("cat-file", "--batch-check=%(objectname)")
    text = "\n".join(oids).encode() + b"\n"
    status, out = repo.git_status(*args, stdin=text, ok=range(-15, 256), env=NO_LAZY_FETCH)
    found = {line.decode() for line in out.split(b"\n") if line and b" " not in line}
    if status == 0 or len(oids) == 1:
        return found
    # git dies at the first object that is promised and absent: ask one by one
    return {oid for oid in oids if oid in found or present(repo, [oid])}


def install(repo: Repo, entry: Entry, cache: Cache) -> str:
    """Put an entry's tree and its commit into a store. The commit's id."""
    if not present(repo, [entry.tree]):
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
    if not present(repo, [tree]):
        for suffix in (".idx", ".pack", ".keep"):
            (directory / f"{name}{suffix}").unlink(missing_ok=True)
        pack.unlink(missing_ok=True)
        raise HexpatchError(
            f"the cached snapshot of {spec.label} doesn't hold its tree {tree}; it was removed",
            "run again: it is downloaded anew",
        )
    return tree


def _link(source: Path, target: Path) -> None:
    part = target.with_name(f"tmp_{target.name}.{os.getpid()}")
    part.unlink(missing_ok=True)
    try:
        os.link(source, part)
    except OSError:  # another file system, or one without hard links
        shutil.copyfile(source, part)
        part.chmod(0o444)
    part.replace(target)


def adopt(repo: Repo, entry: Entry) -> str:
    """Give a tree that is in the store its commit in the line of snapshots. The commit's id."""
    commit = catalogue.commit_id(entry)
    ref = f"refs/snapshots/{entry.name}"
    if repo.ref(ref) == commit:
        return commit
    _write_alone(repo, commit, catalogue.commit_data(entry))
    mend_shallow(repo)
    repo.update_refs({ref: commit})
    return commit


def _write_alone(repo: Repo, oid: str, data: bytes) -> None:
    """Write a commit whose parents may be missing: listed as shallow before it exists.

    So a crash at any point leaves a store that fsck takes; mend_shallow drops needless lines.
    """
    if present(repo, [oid]):
        return
    path = repo.git_dir / "shallow"
    _write(path, _text(_lines(path) | {oid}))
    repo.close()
    repo.write_objects([("commit", data)])


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
    _write_alone(repo, entry.upstream, entry.upstream_object)
    mend_shallow(repo)
    repo.update_refs({f"refs/upstream/commits/{entry.upstream}": entry.upstream})
    return entry.upstream


def mend_shallow(repo: Repo, borrowed: frozenset[str] | None = None) -> None:
    """Rewrite `shallow`: the commits in the store whose parents are not.

    These are snapshots whose predecessor is not installed, upstream commits that came alone, what
    clones we borrow objects from list (`borrowed`; None: as last time), and git's own lines.
    """
    path, note = repo.git_dir / "shallow", repo.git_dir / "hexpatch-shallow-clone"
    now = _lines(path)
    lent_before = _lines(note)
    lent = lent_before if borrowed is None else borrowed
    table = catalogue.entries()
    line = [catalogue.commit_id(e) for e in table]
    own = [e.upstream for e in table if e.upstream]
    there = present(repo, [*line, *own, *(e.tree for e in table)])
    needed = set(lent)
    before: tuple[str, str] | None = None
    for commit, entry in zip(line, table, strict=True):
        if commit in there and before is not None and not set(before) <= there:
            needed.add(commit)
        before = commit, entry.tree
    for entry in table:
        if entry.upstream in there and not _has_parents(repo, entry):
            needed.add(entry.upstream)
    ours = {*line, *own, *lent_before}
    wanted = (now - ours) | needed
    if lent != lent_before:
        _write(note, _text(lent | (lent_before & now)))
    if wanted != now:
        if wanted:
            _write(path, _text(wanted))
        else:
            path.unlink(missing_ok=True)
        repo.close()  # a running reader has the old list
    if lent != lent_before:
        _write(note, _text(lent))


def upstream_edge(repo: Repo) -> frozenset[str]:
    """Upstream's own commits that are in the store without their history."""
    own = {e.upstream for e in catalogue.entries() if e.upstream}
    return _lines(repo.git_dir / "shallow") & own


def _has_parents(repo: Repo, entry: Entry) -> bool:
    parents = objects.parse_commit(entry.upstream_object).parents
    return present(repo, parents) == set(parents)


def _lines(path: Path) -> frozenset[str]:
    try:
        return frozenset(path.read_text("ascii").split())
    except FileNotFoundError:
        return frozenset()


def _text(lines: set[str] | frozenset[str]) -> str:
    return "".join(f"{line}\n" for line in sorted(lines))


@dataclass(frozen=True)
class Known:
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
