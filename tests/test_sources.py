"""Upstream: clones of every kind, a remote that answers or doesn't, snapshots behind them."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from test_snapshots import FILES, Shelf, commit, fails, git, healthy, new_repo, shelf, store

from hexpatch import catalogue, shallow
from hexpatch.errors import MissingObject
from hexpatch.proc import Finished
from hexpatch.remote import Remote
from hexpatch.repo import Repo, init_bare
from hexpatch.sources import Found, UnknownRevision, Upstream

pytestmark = pytest.mark.slow  # the rest of the suite stays quick without it

__all__ = ["shelf", "store"]  # fixtures


@dataclass(frozen=True)
class Where:
    url: str | None = None
    branch: str = "main"
    repo: Path | None = None


@dataclass(frozen=True)
class Series:
    root: Path
    upstream: Where = Where()
    sources: tuple[str, ...] = ("clone", "remote", "snapshot")


@dataclass(frozen=True)
class Base:
    name: str
    commit: str | None = None
    tree: str | None = None
    snapshot: str | None = None


@dataclass
class World:
    root: Path
    shelf: Shelf
    store: Repo
    up: Path

    @property
    def url(self) -> str:
        return f"file://{self.up}"

    @property
    def said(self) -> str:
        return "\n".join(self.shelf.said)

    def upstream(self, offline: bool = False, sources: str = "", **where: object) -> Upstream:
        series = Series(self.root, Where(**where))  # type: ignore[arg-type]
        if sources:
            series = replace(series, sources=tuple(sources.split()))
        return Upstream(
            self.store, series, self.shelf.said.append, offline, client=self.shelf.client
        )

    def id(self, rev: str, where: Path | None = None) -> str:
        return git(where or self.up, "rev-parse", rev)

    def clone(self, name: str, *options: str) -> Path:
        git(self.root, "clone", "-q", *options, self.url, name)
        return self.root / name


@pytest.fixture
def world(tmp_path: Path, shelf: Shelf, store: Repo) -> World:
    """An upstream of three commits: tag `base`, then rows in words, twice."""
    up = tmp_path / "up"
    new_repo(up, {"src/rows.txt": b"row 9\nrow 18\n"}, "base tree")
    git(up, "config", "uploadpack.allowFilter", "true")
    git(up, "config", "uploadpack.allowAnySHA1InWant", "true")
    git(up, "tag", "-a", "-m", "base", "base")
    commit(up, {"src/rows.txt": b"row nine\nrow 18\n"}, "rows : nine in words (#131)")
    git(up, "tag", "mid")
    commit(up, {"src/rows.txt": b"row nine\nrow eighteen\n"}, "rows : eighteen in words (#132)")
    return World(tmp_path, shelf, store, up)


def untouched(clone: Path) -> str:
    """All of a clone that must stay as it is."""
    gitdir = Path(git(clone, "rev-parse", "--absolute-git-dir"))
    shallow = gitdir / "shallow"
    return "\n".join(
        (
            git(clone, "status", "--porcelain=v2", "--branch", ok=False),
            git(clone, "for-each-ref"),
            git(clone, "config", "--local", "--list"),
            shallow.read_text() if shallow.exists() else "",
            "\n".join(sorted(p.name for p in gitdir.iterdir())),
        )
    )


# -- clones --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["plain", "bare", "worktree"])
def test_names_are_the_clones(kind: str, world: World) -> None:
    clone = world.clone("mine", *(["--bare"] if kind == "bare" else []))
    if kind == "worktree":
        git(clone, "worktree", "add", "-q", "--detach", "../tree", "mid")
        clone = world.root / "tree"
    before = untouched(clone)
    upstream = world.upstream(repo=clone)
    head = world.id("HEAD", clone)
    revs = {"main": "main", "base": "base^{commit}", "main~2": "main~2", "mid": "mid", "HEAD": head}
    revs[world.id("mid")[:8]] = "mid"
    revs[world.id("base^{commit}")] = "base^{commit}"
    if kind != "bare":
        revs["origin/main"] = "main"
    for rev, same in revs.items():
        found = upstream.resolve(rev)
        assert found.commit == world.id(same), rev
        assert found.tree == world.id(f"{same}^{{tree}}"), rev
        assert (found.via, found.real, found.snapshot) == ("clone", True, None)
    assert upstream.resolve("base").name == "base"
    assert upstream.resolve("main~2").name == "base"
    assert upstream.resolve("main").name == world.id("main")[:9]
    assert untouched(clone) == before
    healthy(world.store)


def test_clones_name_wins_over_a_snapshot(world: World) -> None:
    clone = world.clone("mine")
    git(clone, "tag", "v3", "mid")
    assert world.upstream(repo=clone).resolve("v3").commit == world.id("mid")
    assert world.upstream(repo=clone).resolve("b1").via == "snapshot"


def test_shallow_clone_without_the_base(world: World) -> None:
    """Field case 19: said before anything is changed, and not as a conflict."""
    clone = world.clone("shallow", "--depth", "1", "--no-tags")
    before = untouched(clone)
    base = world.id("base^{commit}")
    tree = world.id("base^{tree}")
    for pin in (Base("base", base, tree), Base("base", base), Base("base")):
        fails(
            lambda pin=pin: world.upstream(repo=clone).base(pin),
            f"the clone {clone} is shallow and lacks the pinned base {pin.commit or 'base'}",
            f"git -C {clone} fetch --unshallow",
        )
    assert untouched(clone) == before
    assert world.upstream(repo=clone).resolve("main").commit == world.id("main")
    healthy(world.store)
    git(clone, "fetch", "-q", "--unshallow")
    found = world.upstream(repo=clone).base(Base("base", base, tree))
    assert (found.commit, found.tree, found.via) == (base, tree, "clone")
    assert not (world.store.git_dir / "shallow").exists()
    line = world.store.git("rev-list", "--reverse", f"{base}..{world.id('main')}")
    assert line.decode().split() == [world.id("mid"), world.id("main")]
    healthy(world.store)


def test_shallow_clone_and_a_remote_that_has_the_base(world: World) -> None:
    clone = world.clone("shallow", "--depth", "1", "--no-tags")
    base = world.id("base^{commit}")
    found = world.upstream(repo=clone, url=world.url).base(Base("base", base))
    assert (found.commit, found.via) == (base, "remote")
    healthy(world.store)


def test_partial_clone_gets_blobs_into_our_store(world: World) -> None:
    clone = world.clone("partial", "--filter=blob:none", "--no-checkout")
    have = git(clone, "count-objects", "-v")
    upstream = world.upstream(repo=clone)
    found = upstream.base(Base("base", world.id("base^{commit}"), world.id("base^{tree}")))
    blob = world.id("base:src/rows.txt")
    assert world.store.read(blob, "blob") == b"row 9\nrow 18\n"
    assert found.via == "clone"
    assert git(clone, "count-objects", "-v") == have


def test_partial_clone_with_its_remote_gone(world: World) -> None:
    clone = world.clone("partial", "--filter=blob:none", "--no-checkout")
    base, blob = world.id("base^{commit}"), world.id("base:src/rows.txt")
    world.up.rename(world.root / "gone")
    upstream = world.upstream(repo=clone)
    upstream.base(Base("base", base))
    with pytest.raises(MissingObject) as caught:
        world.store.read(blob, "blob")
    assert blob in caught.value.message
    fails(lambda: upstream.resolve("f" * 40), "no upstream revision")


def test_a_clone_that_is_none(world: World) -> None:
    fails(lambda: world.upstream(repo=world.root / "nowhere"), "nowhere is not a git repository")


def test_a_clone_that_vanished(world: World) -> None:
    clone = world.clone("mine")
    world.upstream(repo=clone).resolve("main")
    shutil.rmtree(clone)
    upstream = world.upstream(url=world.url)
    assert f"the clone with {clone}/.git/objects is gone" in world.said
    found = upstream.resolve("main")
    assert (found.commit, found.via) == (world.id("main"), "remote")
    healthy(world.store)


def test_another_clone(world: World) -> None:
    one, two = world.clone("one"), world.clone('two\n#"2')
    world.upstream(repo=one).resolve("main")
    commit(two, {"new": b"1"}, "new")
    found = world.upstream(repo=two).resolve("main")
    assert found.commit == world.id("main", two)
    healthy(world.store)


# -- the remote ----------------------------------------------------------------------------


def test_remote_branch_tag_id_and_steps(world: World) -> None:
    upstream = world.upstream(url=world.url)
    mid, base = world.id("mid"), world.id("base^{commit}")
    assert upstream.resolve("base") == Found(base, world.id("base^{tree}"), "base", "remote")
    assert upstream.resolve("base").via == "store"
    assert upstream.resolve(mid).commit == mid
    assert upstream.resolve("main").commit == world.id("main")
    assert upstream.resolve("main~1").commit == mid
    assert upstream.resolve("mid^").commit == base
    assert upstream.resolve("latest").commit == world.id("main")
    assert upstream.resolve("master").commit == world.id("main")
    newer = commit(world.up, {"new": b"1"}, "new")
    assert upstream.resolve("main").commit == newer
    healthy(world.store)


def test_abbreviated_id_through_the_remote(world: World) -> None:
    upstream = world.upstream(url=world.url)
    assert upstream.resolve(world.id("mid")[:8]).commit == world.id("mid")


def test_remote_that_is_away_is_said_once_and_snapshots_serve(world: World) -> None:
    upstream = world.upstream(url=f"file://{world.root}/nowhere")
    newest = world.shelf.table[-1]
    found = upstream.resolve("main")
    assert found == Found(
        catalogue.commit_id(newest), newest.tree, "v3", "snapshot", str(newest.spec), real=False
    )
    upstream.resolve("b1")
    away = f"upstream file://{world.root}/nowhere can't be reached (does not appear to be a git"
    assert world.said.count(away) == world.said.count("can't be reached (") == 1
    assert "main means the newest snapshot known here: v3 (node-llama-cpp 3.0.0)" in world.said


@pytest.mark.parametrize(
    "said, reason",
    [
        (
            "fatal: unable to access 'https://github.com/ggml-org/llama.cpp.git/': "
            "Could not resolve host: github.com",
            "Could not resolve host: github.com",
        ),
        (
            "ssh: Could not resolve hostname nowhere: Name or service not known\n"
            "fatal: Could not read from remote repository.\n\nPlease make sure",
            "Could not resolve hostname nowhere: Name or service not known",
        ),
        ("fatal: repository 'https://x/y/' not found", "repository 'https://x/y/' not found"),
        ("warning: odd\nkilled", "killed"),
        ("", "git said nothing"),
    ],
)
def test_the_reason_is_short(
    said: str, reason: str, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = Finished(128, b"", said.encode())
    monkeypatch.setattr("hexpatch.remote.proc.run", lambda *_, **__: done)
    tried: list[str] = []
    remote = Remote(world.store, "https://x/y", world.shelf.said.append, False)
    monkeypatch.setattr("hexpatch.remote.configure", lambda *_: False)
    assert remote.fetch_name("main", tried) is None
    assert tried == [f"upstream https://x/y can't be reached ({reason})"]


def test_branch_fetched_before_serves_when_the_remote_is_away(world: World) -> None:
    world.upstream(url=world.url).resolve("main")
    tip = world.id("main")
    found = world.upstream(offline=True, url=world.url).resolve("main")
    assert (found.commit, found.via) == (tip, "store")
    assert "when last fetched" in world.said


def test_moved_tag_is_an_error(world: World) -> None:
    base, mid = world.id("base^{tree}"), world.id("mid")
    fails(
        lambda: world.upstream(url=world.url).base(Base("base", mid, base)),
        f"base: tree of {mid} is {world.id('mid^{tree}')}, series.yaml pins {base}",
    )
    orphan = git(world.up, "commit-tree", "-m", "moved", "mid^{tree}")
    git(world.up, "tag", "-f", "base", orphan)
    other = World(world.root, world.shelf, init_bare(world.root / "2.git"), world.up)
    fails(
        lambda: other.upstream(url=world.url).base(Base("base", None, base)),
        "base at file://",
        "has another tree",
    )


def test_history_is_whole_again_once_the_remote_answers(world: World) -> None:
    """A real commit that came alone from a snapshot must not cut the remote's history."""
    entry = world.shelf.table[1]
    assert entry.upstream is not None
    git(world.root / "shelf1", "config", "uploadpack.allowAnySHA1InWant", "true")
    commit(world.root / "shelf1", {"more": b"1"}, "more")
    found = world.upstream().base(Base("x", entry.upstream, entry.tree))
    assert (found.commit, found.via, found.real) == (entry.upstream, "snapshot", True)
    upstream = world.upstream(url=f"file://{world.root}/shelf1")
    tip = upstream.resolve("main").commit
    line = world.store.git("rev-list", f"{entry.upstream}..{tip}")
    assert line.decode().split() == [tip]
    healthy(world.store)


# -- snapshots -----------------------------------------------------------------------------


def test_tree_alone_gives_the_same_commit_from_every_source(world: World) -> None:
    entry = world.shelf.table[2]
    pin = Base("v3", None, entry.tree, str(entry.spec))
    same = catalogue.commit_id(entry)
    found = world.upstream().base(pin)
    assert (found.commit, found.via, found.real) == (same, "snapshot", False)
    other = World(world.root, world.shelf, init_bare(world.root / "2.git"), world.up)
    found = other.upstream(repo=world.root / "shelf2").base(pin)
    assert (found.commit, found.via, found.real) == (same, "clone", False)
    healthy(other.store)


def test_tree_outside_the_catalogue(world: World) -> None:
    pin = Base("base", None, world.id("base^{tree}"))
    found = world.upstream(url=world.url).base(pin)
    assert found.via == "remote" and not found.real
    parts = world.store.commit(found.commit)
    assert (parts.parents, parts.message) == ((), "llama.cpp base\n")
    assert parts.author_date == "946684800 +0000"
    other = World(world.root, world.shelf, init_bare(world.root / "2.git"), world.up)
    assert other.upstream(repo=world.up).base(pin).commit == found.commit


def test_stand_in_for_a_real_commit(world: World) -> None:
    entry = world.shelf.table[0]
    found = world.upstream().base(Base("b1", "e" * 40, entry.tree, str(entry.spec)))
    assert (found.commit, found.real) == (catalogue.commit_id(entry), False)
    assert "commit ids differ" in world.said


@pytest.mark.parametrize(
    "text", ["npm:node-llama-cpp@1.0.0", "node-llama-cpp@1.0.0", "b1", "refs/snapshots/b1"]
)
def test_forms_of_a_snapshot(text: str, world: World) -> None:
    upstream = world.upstream()
    if text.startswith("refs/"):
        upstream.resolve("b1")
    entry = world.shelf.table[0]
    assert upstream.resolve(text).commit == catalogue.commit_id(entry)
    assert upstream.resolve(text).name == "b1"


def test_steps_along_the_line_of_snapshots(world: World) -> None:
    upstream = world.upstream()
    for name in ("b1", world.shelf.table[1].name):
        upstream.resolve(name)
    assert upstream.resolve("v3~2").name == "b1"


def test_release_outside_the_catalogue(world: World) -> None:
    spec = "npm:node-llama-cpp@4.0.0"
    commit(world.root / "shelf0", {"later": b"1"}, "later")
    git(world.root / "shelf0", "reset", "-q", "--soft", "HEAD~1")
    git(world.root / "shelf0", "commit", "-q", "--amend", "-m", "later")
    from test_snapshots import npm_tgz

    world.shelf.client.archives[spec] = npm_tgz(world.root / "later.tgz", world.root / "shelf0")
    found = world.upstream().resolve(spec)
    assert "is not in the catalogue" in world.said
    assert (found.name, found.snapshot, found.real) == ("npm-4.0.0", spec, False)
    again = World(world.root, world.shelf, init_bare(world.root / "2.git"), world.up)
    pinned = again.upstream().base(Base(found.name, None, found.tree, found.snapshot))
    assert pinned.commit == found.commit
    assert world.shelf.client.calls == [spec]
    assert again.upstream().describe(found.commit) == "npm-4.0.0"


def test_pin_that_names_another_snapshot(world: World) -> None:
    spec = "npm:node-llama-cpp@4.0.0"
    world.shelf.client.archives[spec] = world.shelf.client.archives["npm:node-llama-cpp@1.0.0"]
    fails(
        lambda: world.upstream().base(Base("x", None, "a" * 40, spec)),
        f"base: tree of {spec} is {world.shelf.table[0].tree}, series.yaml pins {'a' * 40}",
    )


def test_order_of_sources(world: World) -> None:
    git(world.up, "tag", "v3", "mid")
    assert world.upstream(url=world.url).resolve("v3").commit == world.id("mid")
    other = World(world.root, world.shelf, init_bare(world.root / "2.git"), world.up)
    found = other.upstream(url=world.url, sources="snapshot remote").resolve("v3")
    assert found.commit == catalogue.commit_id(world.shelf.table[2])


def test_offline(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEXPATCH_OFFLINE", "1")
    upstream = world.upstream(url=world.url)
    fails(lambda: upstream.resolve("b1"), "offline: the snapshot node-llama-cpp 1.0.0 is not in")
    fails(lambda: upstream.resolve("mid"), f"offline: {world.url} was not asked")
    assert world.shelf.client.calls == []


@pytest.mark.parametrize("rev", ["v33", "npm:node-llama-cpp@1.0.1x y", "-x", "", "a..b", "x\ny"])
def test_unknown(rev: str, world: World) -> None:
    error = fails(lambda: world.upstream(url=world.url).resolve(rev))
    if rev == "v33":
        assert isinstance(error, UnknownRevision)
        assert error.hint == "did you mean v3?"


def test_describe_and_known(world: World) -> None:
    upstream = world.upstream(repo=world.clone("mine"))
    upstream.resolve("b1")
    assert upstream.describe(world.id("mid")) == "mid"
    assert upstream.describe(world.id("main")) == world.id("main")[:9]
    assert upstream.describe(catalogue.commit_id(world.shelf.table[0])) == "b1"
    assert [k.installed for k in upstream.known()] == [True, False, False]


def test_gc_and_a_second_run(world: World) -> None:
    clone = world.clone("shallow", "--depth", "1", "--no-tags")
    upstream = world.upstream(repo=clone)
    upstream.resolve("v3")
    upstream.resolve("main")
    git(world.store.git_dir, "gc", "-q", "--prune=now")
    upstream = world.upstream(repo=clone)
    assert upstream.resolve("v3").via == "store"
    healthy(world.store)
    assert shallow.listed(world.store.git_dir / "shallow") >= {world.id("main")}
    assert FILES["CMakeLists.txt"] == world.store.git(
        "cat-file", "blob", "refs/snapshots/v3:CMakeLists.txt"
    )
