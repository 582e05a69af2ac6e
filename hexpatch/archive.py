"""Archives of package registries: checked without trust, and packed into git objects.

Nothing of an archive is unpacked to disk: its files go straight into git objects, and only those
that belong to the tree.
"""

from __future__ import annotations

import gzip
import re
import shutil
import tarfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from hexpatch import objects
from hexpatch.errors import HexpatchError
from hexpatch.repo import Repo, init_bare

FILE_LIMIT = 512 << 20
TOTAL_LIMIT = 4 << 30
BUNDLE = "package/llama/gitRelease.bundle"

_VENDORED = re.compile(r"([^/]+)/vendor/llama\.cpp/(.+)", re.DOTALL)
# code points that HFS+ leaves out of names: ".g\u200cit" is ".git" there
_IGNORED_BY_HFS = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")


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
        if member.name != BUNDLE:
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
        raise _refused(archive, f"it has no {BUNDLE}")
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
