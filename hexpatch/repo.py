"""The one place that talks to git: plumbing only, bytes in and out, no user configuration."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

from hexpatch import difftree, objects, proc
from hexpatch.difftree import RawChange
from hexpatch.errors import NAME_A_CLONE, HexpatchError, MissingObject
from hexpatch.objects import Commit
from hexpatch.reader import Reader

NULL = "0" * 40
_NAMES = ("utf-8", "surrogateescape")  # of refs: bytes of any encoding, to git
_PLAIN_REF = re.compile(r"refs/[a-z0-9/]+")

# Settings that change bytes or run programs. The user's files are not read at all (see
# `environment`); these guard against what git takes from elsewhere.
PINNED = (
    "core.hooksPath=/dev/null",
    "core.attributesFile=/dev/null",
    "core.excludesFile=/dev/null",
    "core.quotePath=true",
    "core.autocrlf=false",
    "core.safecrlf=false",
    "core.pager=cat",
    "commit.gpgSign=false",
    "diff.renames=true",
    "diff.algorithm=myers",
    "diff.suppressBlankEmpty=false",
    "color.ui=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "protocol.ext.allow=never",
    "advice.detachedHead=false",
)


def environment(*, user_config: bool = False) -> dict[str, str]:
    """The caller's environment without GIT_*; and, but for the network, without git settings."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    for kept in ("GIT_SSH", "GIT_SSH_COMMAND", "GIT_ASKPASS", "GIT_SSL_CAINFO"):
        if user_config and kept in os.environ:
            env[kept] = os.environ[kept]
    env.update(
        LC_ALL="C.UTF-8",
        TZ="UTC",
        GIT_TERMINAL_PROMPT="0",
        GIT_OPTIONAL_LOCKS="0",
        GIT_EDITOR="true",
        GIT_PAGER="cat",
        GIT_ATTR_NOSYSTEM="1",
        GIT_NO_REPLACE_OBJECTS="1",
    )
    if user_config:
        for name in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"):
            if name in os.environ:
                env[name] = os.environ[name]
    else:
        env.update(GIT_CONFIG_GLOBAL=os.devnull, GIT_CONFIG_SYSTEM=os.devnull)
        env.update(GIT_CONFIG_NOSYSTEM="1")
    return env


Blob: TypeAlias = tuple[int, str]  # mode and id


class PathChange(NamedTuple):
    """A commit's change of one path: mode and blob before and after it."""

    commit: str
    subject: str
    before: Blob
    after: Blob


class Walked(NamedTuple):
    """A commit of upstream's history, and what it does: path -> before, after."""

    commit: str
    subject: str
    blobs: dict[bytes, tuple[Blob, Blob]]


def _walked(block: bytes) -> Walked:
    """One commit of `git log --raw -z`."""
    fields = block.split(b"\0")
    blobs: dict[bytes, tuple[Blob, Blob]] = {}
    at = 2
    while at + 1 < len(fields):
        head = fields[at].lstrip(b"\n")
        if not head.startswith(b":"):
            at += 1
            continue
        old_mode, new_mode, old, new, _ = head[1:].decode().split(" ")
        blobs[fields[at + 1]] = (int(old_mode, 8), old), (int(new_mode, 8), new)
        at += 2
    return Walked(fields[0].decode(), fields[1].decode("utf-8", "replace"), blobs)


class Clone(NamedTuple):
    """What the user's own clone is: where its objects are and what it lacks."""

    git_dir: Path
    shallow: bool
    promisor_url: str | None


class Repo:
    """A git directory, optionally with a working tree. Close it, or use it in a `with`."""

    def __init__(self, git_dir: Path, work_tree: Path | None = None) -> None:
        self.git_dir = git_dir
        self.work_tree = work_tree
        self._env = environment()
        self._reader: Reader | None = None
        self._partial: bool | None = None
        self._pinned = [part for setting in PINNED for part in ("-c", setting)]

    def __enter__(self) -> Repo:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the reader process, which may know the store as it was."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None
        self._partial = None

    # -- running git ---------------------------------------------------------------------

    def _argv(self, args: Sequence[str]) -> list[str]:
        argv = ["git", *self._pinned, f"--git-dir={self.git_dir}"]
        if self.work_tree is not None:
            argv.append(f"--work-tree={self.work_tree}")
        return [*argv, *args]

    def git(
        self,
        *args: str,
        stdin: bytes | None = None,
        ok: Sequence[int] = (0,),
        env: dict[str, str] | None = None,
    ) -> bytes:
        """Standard output of one git command; a status not in `ok` is a HexpatchError."""
        return self.git_status(*args, stdin=stdin, ok=ok, env=env)[1]

    def git_status(
        self,
        *args: str,
        stdin: bytes | None = None,
        ok: Sequence[int] = (0, 1),
        env: dict[str, str] | None = None,
    ) -> tuple[int, bytes]:
        """Exit status and standard output of one git command."""
        done = proc.run(
            self._argv(args),
            cwd=self.work_tree,
            env={**self._env, **(env or {})},
            stdin=stdin,
        )
        if done.status not in ok:
            text = done.stderr.decode("utf-8", "replace").strip()
            if done.status < 0:
                text = f"killed by signal {-done.status}"
            raise HexpatchError(f"git {args[0]} failed in {self.git_dir}: {text}")
        return done.status, done.stdout

    # -- objects -------------------------------------------------------------------------

    @property
    def partial(self) -> bool:
        """Is this a partial clone? Then git may ask a remote for an object that is not here."""
        if self._partial is None:
            try:
                config = (self.git_dir / "config").read_bytes().lower()
            except OSError:
                config = b"promisor"  # a linked work tree's, say: git knows
            self._partial = b"promisor" in config or b"partialclone" in config
        return self._partial

    def _asked(self) -> Reader:
        if self._reader is not None and not self._reader.alive:
            self._reader.close()
            self._reader = None
        if self._reader is None:
            self._reader = Reader(self._argv([]), self._env)
        return self._reader

    def lookup(self, name: str) -> tuple[str, str, bytes] | None:
        """(id, kind, data) of an object named by id or expression; None when it is not there."""
        return None if "\n" in name else self._asked().read(name)

    def read(self, oid: str, kind: str) -> bytes:
        """Data of an object that has to be there and be of that kind."""
        found = self.lookup(oid)
        if found is None:
            raise MissingObject(
                f"{kind} {oid} is not in {self.git_dir}",
                "the clone may be shallow or partial and its remote out of reach: "
                "`git fetch --unshallow`, or go online, and run again",
            )
        if found[1] != kind:
            raise HexpatchError(f"{oid} is a {found[1]}, not a {kind}")
        return found[2]

    def existing(self, oids: Iterable[str]) -> set[str]:
        """Which of these objects the store has already; a partial one asks its remote, too."""
        asked = list(oids)
        if not asked:
            return set()
        if not self.partial:
            return self._asked().there(asked)
        return self._listed(asked, {}, (0,))[1]

    def present(self, oids: Sequence[str]) -> set[str]:
        """Which of these objects are here, without asking a promisor remote for the others."""
        if not oids:
            return set()
        if not self.partial:
            return self._asked().there(oids)
        # git >= 2.39.4 obeys this
        status, found = self._listed(oids, {"GIT_NO_LAZY_FETCH": "1"}, range(-15, 256))
        if status == 0 or len(oids) == 1:
            return found
        # git dies at the first object that is promised and absent: ask one by one
        return {oid for oid in oids if oid in found or self.present([oid])}

    def _listed(
        self, oids: Sequence[str], env: dict[str, str], ok: Sequence[int]
    ) -> tuple[int, set[str]]:
        """Status and those ids that a process of its own has seen."""
        text = "\n".join(oids).encode() + b"\n"
        args = ("cat-file", "--batch-check=%(objectname)")
        status, out = self.git_status(*args, stdin=text, ok=ok, env=env)
        return status, {line.decode() for line in out.split(b"\n") if line and b" " not in line}

    def write_objects(self, objs: Sequence[tuple[str, bytes]], *, copy: bool = False) -> None:
        """Add whole objects (kind, data): a few loose, many as one pack. All or none.

        `copy`: as a pack, which git writes whole, even if an alternate has some of them.
        """
        if not objs:
            return
        import tempfile

        if len(objs) < 100 and not copy:
            command = ["unpack-objects", "-q"]
        else:
            command = ["index-pack", "--stdin", "--no-rev-index"]
        with tempfile.TemporaryFile() as errors:
            argv = self._argv(command)
            try:
                child = subprocess.Popen(
                    argv,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=errors,
                    env=self._env,
                )
            except FileNotFoundError as error:
                raise proc.missing(error, argv) from None
            assert child.stdin is not None
            try:
                for chunk in objects.pack(objs, len(objs)):
                    child.stdin.write(chunk)
                child.stdin.close()
            except BrokenPipeError:
                pass
            except BaseException:
                child.kill()
                child.wait()
                raise
            if child.wait() != 0:
                errors.seek(0)
                text = errors.read().decode("utf-8", "replace").strip()
                raise HexpatchError(f"git {command[0]} failed in {self.git_dir}: {text}")

    # -- names ---------------------------------------------------------------------------

    def resolve(self, name: str, kind: str = "commit") -> str | None:
        """The full id a name stands for, peeled to `kind`; None when there is none."""
        if not name or name.startswith(("-", "^")):  # `^name` is its id with a ^, says git
            return None
        status, out = self.git_status(
            "rev-parse",
            "--verify",
            "--quiet",
            "--end-of-options",
            f"{name}^{{{kind}}}",
            ok=(0, 1, 128),
        )
        return out.decode().strip() if status == 0 else None

    def commit(self, oid: str) -> Commit:
        """Parts of a commit."""
        return objects.parse_commit(self.read(oid, "commit"))

    def tree_of(self, oid: str) -> str:
        """Tree id of a commit."""
        return self.commit(oid).tree

    def refs(self, *prefixes: str) -> dict[str, str]:
        """Refs below these prefixes: full name -> id."""
        out = self.git("for-each-ref", "--format=%(refname) %(objectname)", *prefixes)
        pairs = (line.split(" ") for line in out.decode(*_NAMES).split("\n")[:-1])
        return {pair[0]: pair[1] for pair in pairs}

    def ref(self, name: str) -> str | None:
        """The id a full ref name holds."""
        if _PLAIN_REF.fullmatch(name) and not self.partial:  # no expression, and nothing to fetch
            return next(iter(self._asked().there([name])), None)
        return self.refs(name).get(name)

    def update_refs(self, changes: dict[str, str | None]) -> None:
        """Move, create (id) or delete (None) refs in one transaction."""
        if not changes:
            return
        lines = [
            f"update {name} {oid}" if oid else f"delete {name}" for name, oid in changes.items()
        ]
        self.git("update-ref", "--stdin", stdin="\n".join(lines).encode(*_NAMES) + b"\n")

    def valid_branch(self, name: str) -> bool:
        """Does git take this as a branch name?"""
        return self.git_status("check-ref-format", "--branch", name, ok=(0, 1, 128))[0] == 0

    # -- history -------------------------------------------------------------------------

    def is_ancestor(self, one: str, two: str) -> bool | None:
        """Is `one` an ancestor of `two`? None where a shallow history can't tell."""
        status, _ = self.git_status("merge-base", "--is-ancestor", one, two, ok=(0, 1, 128))
        if status == 0:
            return True
        if (self.git_dir / "shallow").exists():
            return None
        return False if status == 1 else None

    def raw_diff(self, old: str, new: str, *, renames: bool = False) -> list[RawChange]:
        """Paths that differ between two trees or commits."""
        args = ["diff-tree", "-r", "-z", "--raw", "--no-abbrev"]
        args.append("-M" if renames else "--no-renames")
        return difftree.raw(self.git(*args, old, new).split(b"\0"))

    def raw_changes(self, commits: Sequence[str]) -> list[list[RawChange]]:
        """What each commit changes against its first parent, in one process."""
        if not commits:
            return []
        args = ["diff-tree", "--stdin", "-r", "-z", "--raw", "--no-abbrev", "--no-renames"]
        args += ["-m", "--first-parent", "--root", "--always"]
        out = self.git(*args, stdin="\n".join(commits).encode() + b"\n")
        return difftree.raw_of_commits(out)

    def diff(self, old: str, new: str, paths: Sequence[bytes] = (), context: int = 3) -> bytes:
        """Patch text between two trees: full ids, binary payload, no rename guessing."""
        args = ["diff-tree", "-r", "-p", f"-U{context}", "--full-index", "--binary"]
        args += ["--no-renames", old, new]
        if paths:
            args += ["--", *(os.fsdecode(b":(top,literal)" + p) for p in paths)]
        return self.git(*args)

    def patches(self, commits: Sequence[str], *extra: str) -> Iterator[tuple[str, bytes]]:
        """Patch text of each commit against its first parent: canonical bytes, one process."""
        if not commits:
            return
        args = ["diff-tree", "--stdin", "-r", "-p", "-m", "--first-parent", "--root", "--always"]
        args += ["--full-index", "--binary", "-M", *extra]
        ids = "".join(f"{oid}\n" for oid in commits).encode()
        with proc.reading(self._argv(args), self._env, ids) as out:
            yield from difftree.texts(out, commits)

    def not_in(self, base: str, tip: str, others: Sequence[str]) -> set[str]:
        """The commits of base..tip that cannot be reached from the others, so far as is known."""
        stdin = "".join(f"^{oid}\n" for oid in (base, *others)).encode()
        return set(self.git("rev-list", tip, "--stdin", stdin=stdin).decode().split())

    def last_change(self, base: str, tip: str, path: bytes) -> tuple[str, str] | None:
        """(id, subject) of the newest upstream commit in base..tip that touches a path."""
        out = self.git(
            "log",
            "-1",
            "--format=%H%x00%s",
            "--no-show-signature",
            f"{base}..{tip}",
            "--",
            os.fsdecode(b":(top,literal)" + path),
        )
        if not out:
            return None
        oid, _, subject = out.decode("utf-8", "replace").rstrip("\n").partition("\0")
        return oid, subject

    def walked(
        self, base: str, tip: str, *, path: bytes | None = None, most: int | None = None
    ) -> list[Walked]:
        """What the commits of base..tip do, oldest first, of a path or of all; merges left out."""
        out = self.git(
            "log",
            "--reverse",
            "--topo-order",
            "--no-merges",
            "--no-renames",
            "--raw",
            "--no-abbrev",
            "-r",
            "-z",
            "--format=%x01%H%x00%s",
            "--no-show-signature",
            *([] if most is None else [f"--max-count={most}"]),
            f"{base}..{tip}",
            *([] if path is None else ["--", os.fsdecode(b":(top,literal)" + path)]),
        )
        return [_walked(block) for block in out.split(b"\x01")[1:]]

    def changes_of(self, base: str, tip: str, path: bytes) -> list[PathChange]:
        """What the commits of base..tip do to a path, oldest first; merges are left out."""
        return [
            PathChange(made.commit, made.subject, *next(iter(made.blobs.values())))
            for made in self.walked(base, tip, path=path)
            if made.blobs
        ]

    def range_diff(self, old_base: str, old: str, new_base: str, new: str) -> str:
        """git's own comparison of two versions of a series."""
        return self.git(
            "range-diff",
            "--no-color",
            "--creation-factor=90",
            f"{old_base}..{old}",
            f"{new_base}..{new}",
        ).decode("utf-8", "replace")

    def format_patch(self, base: str, tip: str, into: Path, version: int = 1) -> list[Path]:
        """Mails of base..tip as plain `git format-patch` makes them, in order."""
        out = self.git(
            "format-patch",
            *([f"-v{version}"] if version > 1 else []),
            "--zero-commit",
            "--binary",
            "-M",
            "--always",
            "--no-numbered"
            if self.git("rev-list", "--count", f"{base}..{tip}") == b"1\n"
            else "-n",
            "-o",
            os.fspath(into),
            f"{base}..{tip}",
        )
        return [Path(line) for line in out.decode("utf-8", "surrogateescape").split("\n") if line]

    # -- the checkout --------------------------------------------------------------------

    def git_path(self, name: str) -> Path:
        """A file of this (work tree's) git directory."""
        out = os.fsdecode(self.git("rev-parse", "--git-path", name)).rstrip("\n")
        path = Path(out)
        return path if path.is_absolute() else (self.work_tree or Path.cwd()) / path


def init_bare(git_dir: Path) -> Repo:
    """Create (or reopen) a bare store with settings that keep its bytes and objects as they are."""
    if not (git_dir / "HEAD").exists():
        import tempfile

        # made aside and renamed: a killed run leaves a whole store or none
        git_dir.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".store-", dir=git_dir.parent) as scratch:
            made = Path(scratch, git_dir.name)
            done = proc.run(
                ["git", "init", "-q", "--bare", "--template=", "-b", "main", made],
                env=environment(),
            )
            if done.status:
                raise HexpatchError(f"git init failed: {done.stderr.decode('utf-8', 'replace')}")
            with (made / "config").open("a") as config:
                config.write(
                    "[core]\n\tautocrlf = false\n\tsafecrlf = false\n"
                    "[gc]\n\tauto = 0\n\tpruneExpire = never\n"
                )
            with contextlib.suppress(OSError):  # somebody was faster
                made.replace(git_dir)
        if not (git_dir / "HEAD").exists():
            raise HexpatchError(
                f"{git_dir} is in the way: not a git repository", "move it away and run again"
            )
    return Repo(git_dir)


def open_clone(path: Path) -> Clone:
    """Look at the user's clone through GitPython; nothing in it is changed."""
    try:
        import git  # heavy (90 ms): only where a clone is named
    except ModuleNotFoundError:
        raise
    except ImportError:  # it asks git for its version
        raise proc.missing(FileNotFoundError(), ["git"]) from None

    with contextlib.ExitStack() as stack:
        try:
            with scrubbed():
                found = stack.enter_context(git.Repo(path, search_parent_directories=False))
        except (git.NoSuchPathError, git.InvalidGitRepositoryError):
            raise HexpatchError(f"{path} is not a git repository", NAME_A_CLONE) from None
        with found.config_reader("repository") as config:
            ids = str(config.get_value("extensions", "objectformat", "sha1"))
        if ids != "sha1":
            raise HexpatchError(
                f"{path} names its objects by {ids.upper()}, which hexpatch does not support",
                f"upstream's own ids are SHA-1: {NAME_A_CLONE}",
            )
        common = Path(found.common_dir)
        url = None
        for remote in found.remotes:
            with contextlib.suppress(Exception), remote.config_reader as section:
                if section.get_value("promisor", False):
                    url = str(section.get_value("url"))
        return Clone(common.resolve(), (common / "shallow").exists(), url)


@contextlib.contextmanager
def scrubbed() -> Iterator[None]:
    """Hide GIT_* from a library that reads the process environment (GitPython does)."""
    held = {k: os.environ.pop(k) for k in list(os.environ) if k.startswith("GIT_")}
    try:
        yield
    finally:
        os.environ.update(held)
