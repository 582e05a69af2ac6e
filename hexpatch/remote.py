"""Upstream's remote: asked and fetched from by git, with the user's own network settings."""

from __future__ import annotations

import re

from hexpatch import proc, shallow
from hexpatch.repo import PINNED, Repo, environment
from hexpatch.snapshots import Say

# a remote of the store; not a name that a user's own git settings would have something for
NAME = "hexpatch-upstream"
# a black hole must not hold a command for the minutes that git and ssh would wait
CONTACT_SECONDS = 20.0
STALL = ("http.lowSpeedLimit=1000", "http.lowSpeedTime=20")
SSH = "ssh -o ConnectTimeout=10 -o BatchMode=yes"

_NOT_THERE = re.compile(r"couldn't find remote ref|not our ref|unadvertised object")
_WHAT_FAILED = re.compile(r"(?:fatal|ssh|error): (?:unable to access )?(?:'[^']*':? )?")


class Remote:
    """Upstream's repository at a URL. Once it could not be reached it is not asked again.

    What goes wrong is noted in the `tried` of each call.
    """

    def __init__(self, store: Repo, url: str | None, say: Say, offline: bool) -> None:
        self.store = store
        self.url = url
        self.say = say
        self.offline = offline
        self.unreachable: str | None = None

    @property
    def lost(self) -> bool:
        """Whether it can't be asked now."""
        return self.offline or self.unreachable is not None

    def fetch_commit(self, commit: str, tried: list[str]) -> bool:
        """Fetch one commit by its full id, with the history below it."""
        ref = f"refs/upstream/commits/{commit}"
        return self._fetch(commit, ref, tried) and bool(self.store.present([commit]))

    def fetch_name(self, name: str, tried: list[str], *, heads_only: bool = False) -> str | None:
        """Fetch a branch or tag; the commit it stands for."""
        listed = self._list(name, tried)
        for kind in ("heads",) if heads_only else ("tags", "heads"):
            oid = (listed or {}).get(f"refs/{kind}/{name}")
            if oid is None:
                continue
            ref = f"refs/upstream/{kind}/{name}"
            if self.store.ref(ref) == oid or self._fetch(f"refs/{kind}/{name}", ref, tried):
                return self.store.resolve(ref)
        if listed is not None:
            tried.append(f"{self.url} has no {name}")
        return None

    def _list(self, name: str, tried: list[str]) -> dict[str, str] | None:
        """The remote's branch and tag of a name -> ids; None when it can't be asked."""
        if not re.fullmatch(r"[^\s*?\[\\:^~-][^\s*?\[\\:^~]*", name):
            return {}
        patterns = [f"refs/heads/{name}", f"refs/tags/{name}"]
        out = self._git(["ls-remote", "--refs", NAME, *patterns], tried, CONTACT_SECONDS)
        if out is None:
            return None
        pairs = (line.split("\t") for line in out.decode("utf-8", "replace").splitlines())
        return {ref: oid for oid, ref in pairs if ref in patterns}

    def _fetch(self, what: str, ref: str, tried: list[str]) -> bool:
        if self.url is None or self.lost:
            return self._git([], tried, None) is not None
        if not self.url.startswith(("/", "./", "../", "file:")):
            self.say(f"fetching {what.removeprefix('refs/')} from {self.url} ...")
        args = ["fetch", "--quiet", "--filter=blob:none", "--no-tags", "--no-write-fetch-head"]
        args += ["--no-auto-maintenance", "--no-recurse-submodules", "--update-shallow"]
        edge = shallow.upstream_edge(self.store)
        if edge:  # commits that came alone from a snapshot would cut the history off there
            args.append("--unshallow")
        done = self._git([*args, NAME, f"+{what}:{ref}"], tried, None)
        self.store.close()
        shallow.mend(self.store)
        return done is not None

    def _git(self, args: list[str], tried: list[str], limit: float | None) -> bytes | None:
        """Run one git command against the remote, if it can be asked."""
        if self.url is None:
            tried.append("no upstream url is set")
            return None
        if self.offline:
            tried.append(f"offline: {self.url} was not asked")
            return None
        if self.unreachable is not None:
            tried.append(self.unreachable)
            return None
        configure(self.store, {f"remote.{NAME}.url": self.url})
        env = environment(user_config=True)
        if "GIT_SSH" not in env:
            env.setdefault("GIT_SSH_COMMAND", SSH)
        argv = ["git"]
        for setting in (*PINNED, *STALL):
            argv += ["-c", setting]
        argv += [f"--git-dir={self.store.git_dir}", *args]
        done = proc.run(argv, env=env, timeout=limit)
        if done.status == 0:
            return done.stdout
        said = done.stderr.decode("utf-8", "replace").strip()
        reason = _reason(said) if not done.timed_out else f"no answer in {limit:.0f} s"
        if _NOT_THERE.search(said):
            tried.append(f"{self.url}: {reason}")
            return None
        self.unreachable = f"upstream {self.url} can't be reached ({reason})"
        self.say(self.unreachable)
        tried.append(self.unreachable)
        return None


def setting(store: Repo, key: str) -> str | None:
    """A setting of the store's own."""
    status, out = store.git_status("config", "--local", "--get", key)
    return out.decode("utf-8", "surrogateescape").rstrip("\n") if status == 0 else None


def configure(store: Repo, wanted: dict[str, str]) -> bool:
    """Give the store these settings; whether one was another."""
    changed = {k: v for k, v in wanted.items() if setting(store, k) != v}
    for key, value in changed.items():
        store.git("config", key, value)
    return bool(changed)


_ASIDE = "alternate object path"  # of a clone whose lender is gone: `borrow` says so


def _reason(said: str) -> str:
    """Why git failed: the telling end of its first `fatal:` line, else its last line."""
    lines = [line for line in said.splitlines() if line.strip() and _ASIDE not in line]
    fatal = [line for line in lines if line.startswith(("fatal:", "ssh:", "error:"))]
    line = (fatal or lines or ["git said nothing"])[0 if fatal else -1]
    return _WHAT_FAILED.sub("", line, count=1).rstrip(".: ")
