"""Snapshots: hostile and damaged archives, downloads that die, the cache, the line of commits."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import io
import os
import subprocess
import sys
import tarfile
import threading
import time
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

import pytest
from conftest import hears_ctrl_c

from hexpatch import catalogue, objects, shallow, snapshots
from hexpatch.archive import BUNDLE, pack_archive
from hexpatch.catalogue import Entry, Spec
from hexpatch.errors import HexpatchError
from hexpatch.repo import Repo, environment, init_bare

pytestmark = pytest.mark.slow  # the rest of the suite stays quick without it

FILES = {"CMakeLists.txt": b"project(llama)\n", "ggml/src/ggml.c": b"int ggml;\n", "a b/\xe9": b""}
GIT_ENV = {
    **environment(),
    "GIT_AUTHOR_NAME": "ci",
    "GIT_AUTHOR_EMAIL": "ci@x.invalid",
    "GIT_AUTHOR_DATE": "1700000000 +0000",
    "GIT_COMMITTER_NAME": "ci",
    "GIT_COMMITTER_EMAIL": "ci@x.invalid",
    "GIT_COMMITTER_DATE": "1700000000 +0000",
}


def git(where: Path, *args: str, ok: bool = True) -> str:
    done = subprocess.run(["git", *args], cwd=where, env=GIT_ENV, capture_output=True, text=True)
    assert done.returncode == 0 or not ok, done.stderr
    return done.stdout.strip() if ok else done.stdout + done.stderr


def new_repo(where: Path, files: dict[str, bytes], message: str = "one") -> str:
    where.mkdir(parents=True)
    git(where, "init", "-q", "-b", "main")
    return commit(where, files, message)


def commit(where: Path, files: dict[str, bytes], message: str) -> str:
    for name, data in files.items():
        path = where / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    git(where, "add", "-A", "-f")
    git(where, "commit", "-q", "-m", message)
    return git(where, "rev-parse", "HEAD")


def tgz(path: Path, members: list[tuple[tarfile.TarInfo, bytes]]) -> Path:
    with tarfile.open(path, "w:gz", format=tarfile.PAX_FORMAT) as tar:
        for info, data in members:
            tar.addfile(info, io.BytesIO(data) if info.isreg() else None)
    return path


def file(name: str, data: bytes = b"x\n", mode: int = 0o644) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(data), mode
    return info, data


def special(name: str, kind: bytes, link: str = "") -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info, b""


def vendored(name: str) -> str:
    return f"llama_cpp_python-0.0.1/vendor/llama.cpp/{name}"


def sdist(path: Path, files: dict[str, bytes]) -> Path:
    members = [file("llama_cpp_python-0.0.1/setup.py"), file(vendored(".git"), b"gitdir: x\n")]
    members += [file(vendored(name), data) for name, data in files.items()]
    return tgz(path, members)


def npm_tgz(path: Path, repo: Path) -> Path:
    bundle = path.with_suffix(".bundle")
    git(repo, "bundle", "create", "-q", str(bundle), "HEAD")
    return tgz(path, [file("package/x.js"), file(BUNDLE, bundle.read_bytes())])


@dataclass
class FakeClient:
    """Copies prepared files; `deaths` downloads die first."""

    archives: dict[str, Path]
    deaths: int = 0
    delay: float = 0.0
    calls: list[str] = field(default_factory=list)

    def argv(self, spec: Spec, integrity: str | None, into: Path, scratch: Path) -> list[str]:
        self.calls.append(str(spec))
        source = self.archives[str(spec)]
        code = "import shutil, sys, time; time.sleep(float(sys.argv[3])); "
        if len(self.calls) <= self.deaths:
            code += "print('ECONNRESET: the line went dead'); "
            code += "open(sys.argv[2] + '/half.tgz', 'wb').write(b'half'); sys.exit(7)"
        else:
            code += "shutil.copy(sys.argv[1], sys.argv[2])"
        return [sys.executable, "-c", code, str(source), str(into), str(self.delay)]


@dataclass
class Shelf:
    """A small catalogue with its archives, in date order: npm 1.0.0, pypi 0.0.2, npm 3.0.0."""

    table: tuple[Entry, ...]
    client: FakeClient
    said: list[str] = field(default_factory=list)

    def cache(self, **more: bool) -> snapshots.Cache:
        return snapshots.Cache(self.said.append, client=self.client, **more)


def entry_of(day: str, name: str, spec: str, tree: str, archive: Path, **more: object) -> Entry:
    parsed = catalogue.parse_spec(spec)
    assert parsed is not None
    data = archive.read_bytes()
    integrity = f"sha256:{hashlib.sha256(data).hexdigest()}"
    if parsed.kind == "npm":
        integrity = "sha512-" + base64.b64encode(hashlib.sha512(data).digest()).decode()
    return Entry(date.fromisoformat(day), name, parsed, tree, len(data), integrity, **more)  # type: ignore[arg-type]


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shelf:
    monkeypatch.setenv("HEXPATCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("HEXPATCH_OFFLINE", raising=False)
    specs = ("npm:node-llama-cpp@1.0.0", "pypi:llama-cpp-python==0.0.2", "npm:node-llama-cpp@3.0.0")
    archives, table = {}, []
    for n, (spec, name) in enumerate(zip(specs, ("b1", "abcdef012", "v3"), strict=True)):
        files = {**FILES, "version": b"%d\n" % n}
        repo = tmp_path / f"shelf{n}"
        head = new_repo(repo, files)
        archive = tmp_path / f"archive{n}.tgz"
        if spec.startswith("npm"):
            npm_tgz(archive, repo)
        else:
            archive = sdist(tmp_path / f"archive{n}.tar.gz", files)
        raw = subprocess.check_output(["git", "cat-file", "commit", head], cwd=repo)
        more = {"upstream": head, "upstream_object": raw} if n == 1 else {}
        if n == 1:
            name = head[:9]
        tree = git(repo, "rev-parse", "HEAD^{tree}")
        table.append(entry_of(f"2026-01-0{n + 1}", name, spec, tree, archive, **more))
        archives[spec] = archive
    made = tuple(table)
    monkeypatch.setattr(catalogue, "entries", lambda: made)
    return Shelf(made, FakeClient(archives))


@pytest.fixture
def store(tmp_path: Path) -> Repo:
    return init_bare(tmp_path / "upstream.git")


def fails(action: object, *texts: str) -> HexpatchError:
    with pytest.raises(HexpatchError) as caught:
        action()  # type: ignore[operator]
    for text in texts:
        assert text in f"{caught.value.message}\n{caught.value.hint}"
    return caught.value


def leftovers(tmp_path: Path) -> list[str]:
    """What a failed fetch left in the cache, locks aside."""
    return [p.name for p in (tmp_path / "cache/snapshots").glob("*") if p.suffix != ".lock"]


def healthy(store: Repo) -> None:
    store.close()
    out = git(store.git_dir, "fsck", "--strict", ok=False)
    assert not [x for x in out.splitlines() if not x.startswith(("dangling", "notice"))], out
    git(store.git_dir, "log", "--all", "--stat")


# -- the real catalogue --------------------------------------------------------------------


def test_catalogue_is_in_date_order_and_each_tree_is_there_once() -> None:
    table = catalogue.entries()
    assert len(table) == 36
    assert [e.date for e in table] == sorted(e.date for e in table)
    assert len({e.tree for e in table}) == len({e.name for e in table}) == 36
    assert sum(1 + len(e.aliases) for e in table) == 38
    for entry in table:
        if entry.upstream_object:
            assert objects.parse_commit(entry.upstream_object).tree == entry.tree
            assert entry.upstream is not None and entry.upstream.startswith(entry.name)


def test_commit_ids_are_a_function_of_the_catalogue() -> None:
    v050 = catalogue.by_name("v0.5.0")
    assert v050 is not None
    assert catalogue.commit_id(v050) == "d637edcae8aebd3e904ed1d70033e3fb30db5a30"
    parts = objects.parse_commit(catalogue.commit_data(v050))
    v040 = catalogue.by_name("v0.4.0")
    assert v040 is not None and parts.parents == (catalogue.commit_id(v040),)
    assert parts.message == "llama.cpp v0.5.0\n\nSnapshot: npm:node-llama-cpp@3.22.1\n"
    assert parts.author_date == "1790553600 +0000"


@pytest.mark.parametrize(
    "text, spec",
    [
        ("npm:node-llama-cpp@3.22.1", Spec("npm", "3.22.1")),
        ("node-llama-cpp@3.22.1", Spec("npm", "3.22.1")),
        ("pypi:llama-cpp-python==0.3.36", Spec("pypi", "0.3.36")),
        ("llama_cpp_python==0.3.36", Spec("pypi", "0.3.36")),
        ("npm:left-pad@1.0.0", None),
        ("node-llama-cpp@--registry=x", None),
        ("llama-cpp-python==0.3.36 --index-url x", None),
        ("node-llama-cpp@../../x", None),
        ("v0.5.0", None),
    ],
)
def test_specs(text: str, spec: Spec | None) -> None:
    assert catalogue.parse_spec(text) == spec
    if spec is not None:
        assert catalogue.parse_spec(str(spec)) == spec


def test_names_find_entries() -> None:
    newest = catalogue.newest()
    assert newest.name == "0c1e57098"
    assert catalogue.by_name("0c1e570") is newest
    assert catalogue.by_name("0c1e57098bba43ac29e6e3b677cdceebdd22334f") is newest
    assert catalogue.by_name("0c1e57099") is None
    alias = catalogue.by_spec(Spec("npm", "3.22.0"))
    assert alias is not None and alias.spec.version == "3.22.1"


# -- archives ------------------------------------------------------------------------------


def test_sdist_becomes_the_tree_git_would_make(tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    new_repo(repo, FILES)
    (repo / "run.sh").write_bytes(b"#!/bin/sh\n")
    (repo / "run.sh").chmod(0o755)
    (repo / "docs").mkdir()
    (repo / "docs/up").symlink_to("../CMakeLists.txt")
    (repo / ".gitignore").write_bytes(b"*\n")
    commit(repo, {"foo-bar": b"1", "foo/x": b"2", "foo.c": b"3"}, "two")
    members = [file("p/vendor/llama.cpp/.git", b"gitdir: x\n"), file("p/.git/HEAD")]
    for name in git(repo, "ls-files", "-z").split("\0")[:-1]:
        path = repo / os.fsencode(name).decode("utf-8", "surrogateescape")
        if path.is_symlink():
            members.append(
                special(f"p/vendor/llama.cpp/{name}", tarfile.SYMTYPE, str(path.readlink()))
            )
        else:
            mode = path.stat().st_mode & 0o777
            members.append(file(f"p/vendor/llama.cpp/{name}", path.read_bytes(), mode))
    archive = tgz(tmp_path / "a.tar.gz", members)
    pack, tree = pack_archive(archive, "pypi", tmp_path / "scratch")
    assert tree == git(repo, "rev-parse", "HEAD^{tree}")
    assert pack.with_suffix(".idx").exists()


def test_hard_link_inside_the_tree_is_the_same_file(tmp_path: Path) -> None:
    members = [file(vendored("a")), special(vendored("b"), tarfile.LNKTYPE, vendored("a"))]
    linked = pack_archive(tgz(tmp_path / "a.tar.gz", members), "pypi", tmp_path / "1")
    plain = sdist(tmp_path / "b.tar.gz", {"a": b"x\n", "b": b"x\n"})
    assert linked[1] == pack_archive(plain, "pypi", tmp_path / "2")[1]


HOSTILE = {
    "dotdot": ([file(vendored("../../../evil"))], '".." in a name'),
    "dotdot elsewhere": ([file("p/../../evil")], '".." in a name'),
    "absolute": ([file("/etc/evil")], "absolute name"),
    "git directory": ([file(vendored("sub/.git/config"))], "a name git doesn't allow"),
    "GIT directory": ([file(vendored(".GIT/hooks/x"))], "a name git doesn't allow"),
    "git on hfs": ([file(vendored(".g\u200cit/config"))], "a name git doesn't allow"),
    "git on ntfs": ([file(vendored("git~1/config"))], "a name git doesn't allow"),
    "git with a dot": ([file(vendored(".git./config"))], "a name git doesn't allow"),
    "git as a link": (
        [special(vendored(".git"), tarfile.SYMTYPE, "x")],
        "a name git doesn't allow",
    ),
    "empty name": ([file(vendored("a//b"))], "a name git doesn't allow"),
    "link out": ([special(vendored("d/l"), tarfile.SYMTYPE, "../../x")], "leads out"),
    "absolute link": ([special(vendored("l"), tarfile.SYMTYPE, "/etc/passwd")], "leads out"),
    "winding link": ([special(vendored("d/l"), tarfile.SYMTYPE, "e/../../x")], "leads out"),
    "link to .git": ([special(vendored("l"), tarfile.SYMTYPE, ".git/config")], "leads out"),
    "hard link out": ([special(vendored("l"), tarfile.LNKTYPE, "p/setup.py")], "leads out"),
    "device": ([special(vendored("null"), tarfile.CHRTYPE)], "neither file"),
    "pipe": ([special("p/pipe", tarfile.FIFOTYPE)], "neither file"),
    "twice": ([file(vendored("a")), file(vendored("a"))], "two members of one name"),
    "file and directory": ([file(vendored("a/b")), file(vendored("a"))], "two members of one name"),
    "below a file": ([file(vendored("a")), file(vendored("a/b"))], "a name below a file"),
    "two tops": ([file(vendored("a")), file("q/vendor/llama.cpp/b")], "two top directories"),
    "nothing": ([file("p/setup.py")], "no files in vendor/llama.cpp"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_sdist_is_refused_and_leaves_nothing(
    case: str, tmp_path: Path, shelf: Shelf, store: Repo
) -> None:
    members, text = HOSTILE[case]
    archive = tgz(tmp_path / "evil.tar.gz", members)
    shelf.client.archives["pypi:llama-cpp-python==9.9"] = archive
    fails(lambda: shelf.cache().fetch(Spec("pypi", "9.9")), "is refused", text)
    assert leftovers(tmp_path) == []
    assert not (tmp_path / "evil").exists()


def test_absurd_sizes_are_refused_by_the_header(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = sdist(tmp_path / "a.tar.gz", {"big": b"x" * 5000})
    monkeypatch.setattr("hexpatch.archive.FILE_LIMIT", 4999)
    fails(lambda: pack_archive(archive, "pypi", tmp_path / "s"), "a file of more than")
    monkeypatch.setattr("hexpatch.archive.FILE_LIMIT", 1 << 20)
    monkeypatch.setattr("hexpatch.archive.TOTAL_LIMIT", 5000)
    fails(lambda: pack_archive(archive, "pypi", tmp_path / "s"), "unpacks to more than")


@pytest.mark.parametrize("cut", [10, 200, -30, -1])
@pytest.mark.parametrize("kind", [0, 1])
def test_truncated_archive(cut: int, kind: int, tmp_path: Path, shelf: Shelf) -> None:
    spec = shelf.table[kind].spec
    whole = shelf.client.archives[str(spec)]
    short = tmp_path / "short.tgz"
    short.write_bytes(whole.read_bytes()[:cut])
    fails(lambda: pack_archive(short, spec.kind, tmp_path / "s"), "truncated or damaged")


def test_npm_bundle_that_needs_more_is_refused(tmp_path: Path) -> None:
    repo = tmp_path / "r"
    new_repo(repo, FILES)
    commit(repo, {"x": b"2"}, "two")
    git(repo, "bundle", "create", "-q", str(tmp_path / "b"), "HEAD~1..HEAD")
    archive = tgz(tmp_path / "a.tgz", [file(BUNDLE, (tmp_path / "b").read_bytes())])
    fails(lambda: pack_archive(archive, "npm", tmp_path / "s"), "not complete")
    full = npm_tgz(tmp_path / "b.tgz", repo)
    fails(lambda: pack_archive(full, "npm", tmp_path / "s2"), "has parents")
    empty = tgz(tmp_path / "c.tgz", [file("package/x")])
    fails(lambda: pack_archive(empty, "npm", tmp_path / "s3"), "has no package/llama")
    noise = tgz(tmp_path / "d.tgz", [file(BUNDLE, b"hello")])
    fails(lambda: pack_archive(noise, "npm", tmp_path / "s4"), "no git bundle header")


# -- downloads and the cache ---------------------------------------------------------------


def test_a_snapshot_is_downloaded_once(tmp_path: Path, shelf: Shelf, store: Repo) -> None:
    entry = shelf.table[0]
    assert snapshots.install(store, entry, shelf.cache()) == catalogue.commit_id(entry)
    other = init_bare(tmp_path / "other.git")
    snapshots.install(other, entry, shelf.cache())
    assert shelf.client.calls == [str(entry.spec)]
    assert shelf.said[0].startswith("downloading node-llama-cpp 1.0.0")
    assert sorted(leftovers(tmp_path)) == [f"{entry.tree}.idx", f"{entry.tree}.pack"]
    healthy(store)
    healthy(other)


def test_wrong_sum(tmp_path: Path, shelf: Shelf, store: Repo) -> None:
    for at in (0, 1):
        spec = str(shelf.table[at].spec)
        shelf.client.archives[spec] = sdist(tmp_path / "evil.tar.gz", {"evil": b"1"})
        fails(
            lambda at=at: snapshots.install(store, shelf.table[at], shelf.cache()),
            "is not the one the catalogue knows",
        )
    assert leftovers(tmp_path) == []
    assert len(shelf.client.calls) == 2, "a wrong file is not asked for again"


def test_wrong_tree(
    tmp_path: Path, shelf: Shelf, store: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = shelf.table[:2]
    evil = sdist(tmp_path / "evil.tar.gz", {"evil": b"1"})
    made = entry_of("2026-01-01", "b1", str(two.spec), one.tree, evil)
    shelf.client.archives[str(two.spec)] = evil
    monkeypatch.setattr(catalogue, "entries", lambda: (made,))
    fails(lambda: snapshots.install(store, made, shelf.cache()), "its tree is", one.tree)
    assert leftovers(tmp_path) == []


def test_a_dead_download_is_started_once_more(tmp_path: Path, shelf: Shelf, store: Repo) -> None:
    shelf.client.deaths = 1
    snapshots.install(store, shelf.table[0], shelf.cache())
    assert any("trying once more" in line and "ECONNRESET" in line for line in shelf.said)


def test_two_dead_downloads_are_an_error(tmp_path: Path, shelf: Shelf, store: Repo) -> None:
    shelf.client.deaths = 2
    fails(
        lambda: snapshots.install(store, shelf.table[0], shelf.cache()),
        "node-llama-cpp 1.0.0 can't be downloaded",
        "ECONNRESET",
        "--repo",
    )
    assert leftovers(tmp_path) == []
    assert store.refs("refs/") == {}


def test_offline(shelf: Shelf, store: Repo) -> None:
    entry = shelf.table[0]
    fails(lambda: snapshots.install(store, entry, shelf.cache(offline=True)), "offline", "cache")
    assert shelf.client.calls == []
    shelf.cache().fetch(entry.spec)
    snapshots.install(store, entry, shelf.cache(offline=True))


def test_damaged_cache_file_is_fetched_again(tmp_path: Path, shelf: Shelf, store: Repo) -> None:
    entry = shelf.table[0]
    _, pack = shelf.cache().fetch(entry.spec)
    for victim in (pack, pack.with_suffix(".idx")):
        victim.chmod(0o644)
        data = bytearray(victim.read_bytes())
        data[len(data) // 2] ^= 1
        victim.write_bytes(data)
        shelf.said.clear()
        shelf.cache().fetch(entry.spec)
        assert "is damaged and is fetched again" in shelf.said[0]
    snapshots.install(store, entry, shelf.cache())
    healthy(store)


def test_what_killed_runs_left_is_swept(tmp_path: Path, shelf: Shelf) -> None:
    place = tmp_path / "cache/snapshots"
    dead = subprocess.Popen(["true"])
    dead.wait()
    for owner in (dead.pid, os.getppid()):
        (place / f"tmp-{owner}-x").mkdir(parents=True)
    old = place / f"tmp-{os.getppid()}-old"
    old.mkdir()
    os.utime(old, (1, 1))
    shelf.cache().fetch(shelf.table[0].spec)
    assert [p.name for p in place.glob("tmp-*")] == [f"tmp-{os.getppid()}-x"]


def test_interrupt_in_the_middle_leaves_nothing(tmp_path: Path, shelf: Shelf) -> None:
    shelf.client.delay = 30
    code = (
        "import os, signal, sys, threading\n"
        "threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
        "from hexpatch import snapshots, catalogue\n"
        "class C:\n"
        "    def argv(self, *a): return ['sleep', '30']\n"
        "snapshots.Cache(print, client=C()).fetch(catalogue.newest().spec)\n"
    )
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        preexec_fn=hears_ctrl_c,
    )
    assert "KeyboardInterrupt" in done.stderr
    assert time.monotonic() - started < 10
    assert leftovers(tmp_path) == []


def test_a_second_run_waits_for_the_first(tmp_path: Path, shelf: Shelf) -> None:
    shelf.client.delay = 0.5
    runs = [threading.Thread(target=shelf.cache().fetch, args=(shelf.table[0].spec,)) for _ in "ab"]
    for run in runs:
        run.start()
    for run in runs:
        run.join()
    assert len(shelf.client.calls) == 1
    assert any("waiting for it" in line for line in shelf.said)


def test_missing_npm(
    tmp_path: Path, shelf: Shelf, store: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = snapshots.Cache(shelf.said.append)
    monkeypatch.setenv("PATH", os.fspath(tmp_path))
    fails(lambda: cache.fetch(shelf.table[0].spec), "npm, which is not installed")


def test_pip_gets_the_hash_before_it_runs_anything(tmp_path: Path) -> None:
    client = snapshots.PackageClients()
    argv = client.argv(Spec("pypi", "0.3.36"), "sha256:00", tmp_path / "out", tmp_path)
    assert "--require-hashes" in argv and "--no-deps" in argv
    text = (tmp_path / "requirements.txt").read_text()
    assert text == "llama-cpp-python==0.3.36 --hash=sha256:00\n"


def test_a_full_disk_is_a_clear_error(tmp_path: Path, shelf: Shelf) -> None:
    (tmp_path / "cache").write_text("a file where the cache should be")
    fails(lambda: shelf.cache().fetch(shelf.table[0].spec), "can't be used", "HEXPATCH_CACHE")


# -- the line of commits -------------------------------------------------------------------


@pytest.mark.parametrize("order", [(0,), (2,), (1, 0), (2, 1, 0), (0, 2, 1), (2, 0), (0, 1, 2)])
def test_every_combination_is_a_sound_repository(
    order: tuple[int, ...], shelf: Shelf, store: Repo
) -> None:
    cache = shelf.cache()
    for step, at in enumerate(order):
        snapshots.install(store, shelf.table[at], cache)
        there = set(order[: step + 1])
        edge = {catalogue.commit_id(shelf.table[i]) for i in there if i and i - 1 not in there}
        assert shallow.listed(store.git_dir / "shallow") == edge
        healthy(store)
    git(store.git_dir, "gc", "-q", "--prune=now")
    healthy(store)
    shallow.mend(store)
    healthy(store)
    for at in order:
        head = store.ref(f"refs/snapshots/{shelf.table[at].name}")
        assert head == catalogue.commit_id(shelf.table[at])
        assert store.tree_of(head) == shelf.table[at].tree


def test_a_crash_anywhere_leaves_a_sound_store(
    shelf: Shelf, store: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    for at in (2, 1, 0):
        for place, name in (
            (snapshots, "link_pack"),
            (Repo, "write_objects"),
            (shallow, "mend"),
            (Repo, "update_refs"),
        ):
            with monkeypatch.context() as patch:
                patch.setattr(place, name, crash)
                with contextlib.suppress(KeyboardInterrupt):
                    snapshots.install(store, shelf.table[at], shelf.cache())
            healthy(store)
        snapshots.install(store, shelf.table[at], shelf.cache())
        healthy(store)
    assert not (store.git_dir / "shallow").exists()


def test_upstreams_own_commit(shelf: Shelf, store: Repo) -> None:
    entry = shelf.table[1]
    snapshots.install(store, entry, shelf.cache())
    assert snapshots.adopt_upstream(store, entry) == entry.upstream
    assert store.tree_of(entry.upstream or "") == entry.tree
    healthy(store)


def test_known(shelf: Shelf, store: Repo) -> None:
    cache = shelf.cache()
    snapshots.install(store, shelf.table[0], cache)
    cache.fetch(shelf.table[1].spec)
    flags = [(k.installed, k.cached) for k in snapshots.known(store, cache)]
    assert flags == [(True, True), (False, True), (False, False)]


# -- the real thing ------------------------------------------------------------------------


@pytest.mark.upstream
@pytest.mark.parametrize("text", ["npm:node-llama-cpp@3.22.1", "pypi:llama-cpp-python==0.3.36"])
def test_real_download(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = catalogue.parse_spec(text)
    assert spec is not None
    entry = catalogue.by_spec(spec)
    assert entry is not None
    said: list[str] = []
    fresh = snapshots.Cache(said.append, directory=tmp_path)
    assert fresh.fetch(spec)[0] == entry.tree
    store = init_bare(tmp_path / "store.git")
    # the user's own cache: filled once, then warm
    assert snapshots.install(store, entry, snapshots.Cache(said.append)) == catalogue.commit_id(
        entry
    )
    healthy(store)
