"""What a patch says, wherever it is applied, and the versions in which a group was exported."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from hexpatch.errors import HexpatchError
from hexpatch.objects import EXECUTABLE, FILE, Commit, object_id
from hexpatch.patchfile import FileDiff, parse_diff
from hexpatch.prbranch import public_message
from hexpatch.refresh import linear
from hexpatch.repo import Repo
from hexpatch.series import Patch, Series
from hexpatch.stack import parse_once
from hexpatch.workspace import FileState

EXPORTS = "refs/hexpatch/export/"

Run = tuple[tuple[bytes, ...], tuple[bytes, ...]]  # removed lines, then added ones
FileContent = tuple[str, bytes, bytes, int, str, tuple[Run, ...]]


@dataclass(frozen=True)
class Content:
    """What a patch says, wherever it is applied."""

    message: str
    author: tuple[str, str]
    files: tuple[FileContent, ...]

    @property
    def subject(self) -> str:
        """First line of the message."""
        return self.message.partition("\n")[0]


# -- content --------------------------------------------------------------------------------


def of_commit(commit: Commit, diff: bytes) -> Content:
    """Content of a commit, given its diff."""
    files = tuple(sorted(_file(d, diff) for d in parse_diff(diff, "a commit")))
    return Content(commit.message, (commit.author_name, commit.author_email), files)


def of_patch(parsed: Series, patch: Patch, files: FileState) -> Content:
    """Content of a patch and the files it owns. Whose hands a new file is in does not matter."""
    name = f"patches/{patch.file}"
    if name not in files:
        raise HexpatchError(f"{name} does not exist")
    mail = parse_once(files[name][0], name, whole=True)
    found = [_file(d, mail.diff) for d in mail.diffs]
    for file in patch.files:
        data, executable = files[file]
        mode = EXECUTABLE if executable else FILE
        found.append(_owned(parsed.upstream_path(file).encode(), mode, data))
    message = public_message(mail.message, parsed.strip_trailers)
    return Content(message, (mail.author_name, mail.author_email), tuple(sorted(found)))


def _file(diff: FileDiff, data: bytes) -> FileContent:
    old = diff.old_path or b""
    mode = diff.new_mode or (FILE if diff.kind == "add" else 0)
    binary = diff.new_id if diff.binary is not None or diff.binary_missing else ""
    runs = () if binary else tuple(_runs(data[diff.start : diff.end]))
    return diff.kind, diff.path, old, mode, binary, runs


def _owned(path: bytes, mode: int, data: bytes) -> FileContent:
    if b"\0" in data[:8000]:
        return "add", path, b"", mode, object_id("blob", data), ()
    lines = data.split(b"\n")
    last = lines.pop()
    added = tuple(lines) + ((last, _NO_NEWLINE) if last else ())
    return "add", path, b"", mode, "", (((), added),) if added else ()


_NO_NEWLINE = b"\\ No newline at end of file"


def _runs(section: bytes) -> Iterator[Run]:
    """Stretches of changed lines. After a section's first @@ every line's first byte tells all."""
    start = section.find(b"\n@@ ")
    removed: list[bytes] = []
    added: list[bytes] = []
    last = removed
    for line in section[start + 1 :].split(b"\n") if start >= 0 else ():
        if line[:1] in (b"-", b"+"):
            last = removed if line[:1] == b"-" else added
            last.append(line[1:])
        elif line[:1] == b"\\":
            last.append(_NO_NEWLINE)
        elif removed or added:
            yield tuple(removed), tuple(added)
            removed, added = [], []
            last = removed
    if removed or added:
        yield tuple(removed), tuple(added)


# -- versions of an export ------------------------------------------------------------------


@dataclass(frozen=True)
class Cut:
    """A branch as it was exported."""

    tip: str
    base: str


@dataclass(frozen=True)
class History:
    """Exports of one group: every version as it first was, and the last cut."""

    versions: tuple[Cut, ...] = ()
    last: Cut | None = None

    @property
    def previous(self) -> Cut | None:
        """What the last cut is to be compared with: the version before, or itself unrebased."""
        if len(self.versions) > 1:
            return self.versions[-2]
        first = self.versions[0] if self.versions else None
        return first if first != self.last else None


def ref(group: str, leaf: str) -> str:
    """Where an export is kept. Names are escaped: a group may be named like a folder of another."""
    return f"{EXPORTS}{escaped(group)}/{leaf}"


def escaped(group: str) -> str:
    """A group's name as one part of a path."""
    return quote(group, safe=" +,=@#&()!$'")


def history(repo: Repo, group: str) -> History:
    """Exports so far."""
    prefix = ref(group, "")
    refs = {name[len(prefix) :]: oid for name, oid in repo.refs(prefix).items()}
    versions: list[Cut] = []
    while f"v{len(versions) + 1}" in refs and f"v{len(versions) + 1}-base" in refs:
        number = f"v{len(versions) + 1}"
        versions.append(Cut(refs[number], refs[f"{number}-base"]))
    last = Cut(refs["tip"], refs["base"]) if "tip" in refs and "base" in refs else None
    return History(tuple(versions), last)


def contents(repo: Repo, cut: Cut) -> list[Content]:
    """Contents of an exported branch, oldest commit first."""
    commits = linear(repo, cut.base, cut.tip)
    diffs = dict(repo.patches([oid for oid, _ in commits])) if commits else {}
    return [of_commit(commit, diffs[oid]) for oid, commit in commits]


def same(repo: Repo, one: Cut, two: Cut) -> bool:
    """Is it the same content, on whatever base?"""
    if one.base == two.base and repo.tree_of(one.tip) != repo.tree_of(two.tip):
        return False  # the same lines at another place
    return contents(repo, one) == contents(repo, two)


def compare(old: Sequence[Content], new: Sequence[Content]) -> list[tuple[str, str]]:
    """(unchanged, changed, new or dropped; subject) for two versions of a branch."""
    free = list(range(len(old)))
    pairs: dict[int, int] = {}

    def sweep(key: Callable[[Content], object]) -> None:
        for at, item in enumerate(new):
            hit = next((i for i in free if key(old[i]) == key(item)), None)
            if at not in pairs and hit is not None:
                pairs[at] = hit
                free.remove(hit)

    sweep(lambda content: content)
    sweep(lambda content: content.subject)
    sweep(lambda content: content.files)
    rows = []
    for at, item in enumerate(new):
        word = "new" if at not in pairs else "unchanged" if old[pairs[at]] == item else "changed"
        rows.append((word, item.subject))
    return rows + [("dropped", old[i].subject) for i in free]
