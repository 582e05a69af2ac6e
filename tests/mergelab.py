"""The three-way merge and strict placement against git itself, on trees that are made up."""

from __future__ import annotations

import random
from pathlib import Path

from hexpatch import objects
from hexpatch.drift import Drift
from hexpatch.merge import Picked, pick
from hexpatch.objects import EXECUTABLE, FILE, LINK, TREE, Commit
from hexpatch.patchfile import PatchFile, parse_diff, parse_patch, render_patch
from hexpatch.pick import Conflict, Laid, Source, lay
from hexpatch.repo import init_bare
from hexpatch.tree import Store, Tree

Files = dict[bytes, tuple[int, bytes]]


class Lab:
    """A bare repository to ask git and ourselves the same question."""

    def __init__(self, folder: Path) -> None:
        self.repo = init_bare(folder / "lab.git")
        self.store = Store(self.repo)

    def commit(self, files: Files, *parents: str) -> str:
        tree = self._tree(files)
        return self.store.add(
            "commit", objects.format_commit(Commit(tree, parents, "a", "a", "1 +0000", "m\n"))
        )

    def _tree(self, files: Files) -> str:
        raw: dict[bytes, tuple[int, str]] = {}
        below: dict[bytes, Files] = {}
        for path, (mode, data) in files.items():
            head, slash, rest = path.partition(b"/")
            if slash:
                below.setdefault(head, {})[rest] = (mode, data)
            else:
                raw[head] = (mode, self.store.add("blob", data))
        for name, inner in below.items():
            raw[name] = (TREE, self._tree(inner))
        return self.store.add("tree", objects.format_tree(raw))

    def three(self, base: Files, upstream: Files, mine: Files) -> tuple[str, str, str]:
        root = self.commit(base)
        made = root, self.commit(upstream, root), self.commit(mine, root)
        self.store.flush()
        return made

    def by_git(self, upstream: str, mine: str) -> str | None:
        """Tree that cherry-pick would make, None for a conflict."""
        status, out = self.repo.git_status("merge-tree", "--write-tree", upstream, mine)
        return None if status else out[:40].decode()

    def diff(self, base: str, mine: str, *options: str) -> bytes:
        args = ["diff-tree", "-r", "-p", "--full-index", "--binary", *options]
        return self.repo.git(*args, base, mine)

    def laid(self, base: str, diff: bytes) -> tuple[Laid | list[Conflict], str]:
        """A diff that went through a patch file, placed strictly; the tree after it."""
        mail = PatchFile("a <a>", "a", "a", "1 +0000", "s", "", (), diff)
        tree = Tree(self.store, self.repo.tree_of(base))
        result = lay(tree, Source("p", parse_patch(render_patch(mail), "p")))
        return result, tree.write()

    def picked(self, base: str, upstream: str, mine: str, *options: str) -> tuple[Picked, str]:
        """The patch base..mine moved to upstream by us: the result and its tree."""
        diff = self.diff(base, mine, *options)
        result, _ = self.laid(base, diff) if diff else (Laid(_nothing(), ()), "")
        assert isinstance(result, Laid), result
        one, two = self.repo.tree_of(base), self.repo.tree_of(upstream)
        paths = {c.old_path or c.path for c in result.changes}
        tree = Tree(self.store, two)
        outcome = pick(tree, result, Drift(self.repo, one, two, paths), "p")
        return outcome, tree.write()


def _nothing() -> Source:
    return Source("p", PatchFile("a <a>", "a", "a", "1 +0000", "s", "", (), b""))


# -- made-up files --------------------------------------------------------------------------

BLOCK = [b"void f() {", b"    a();", b"    b();", b"    c();", b"}", b""]


def some_text(rng: random.Random) -> list[bytes]:
    """Lines with many look-alikes, with some, or with none."""
    size = rng.choice([0, 1, 3, 8, 20, 40])
    kind = rng.choice(["few", "blocks", "mixed", "unique"])
    if kind == "few":
        return [rng.choice([b"a", b"b", b"}"]) for _ in range(size)]
    if kind == "blocks":
        return (BLOCK * 8)[:size]
    if kind == "mixed":
        return [rng.choice([b"", b"}", b"x %d" % n, b"a();"]) for n in range(size)]
    return [b"line %d" % n for n in range(size)]


def edited(rng: random.Random, lines: list[bytes], times: int) -> list[bytes]:
    """Lines inserted, deleted, replaced or copied at random."""
    lines = list(lines)
    new = [b"a", b"}", b"", b"new 1", b"new 2", b"line 3", b"    b();"]
    for _ in range(times):
        at = rng.randrange(len(lines) + 1)
        what = rng.random()
        if what < 0.4:
            lines[at:at] = rng.choices(new, k=rng.choice([1, 1, 2, 3]))
        elif what < 0.65:
            del lines[at : at + rng.choice([1, 1, 2, 4])]
        elif what < 0.9:
            lines[at : at + 1] = [rng.choice(new)]
        else:
            part = lines[at : at + rng.randrange(1, 6)]
            to = rng.randrange(len(lines) + 1)
            lines[to:to] = part
    return lines


def joined(lines: list[bytes], newline: bool) -> bytes:
    data = b"\n".join(lines)
    return data + b"\n" if data and newline else data


def three_texts(rng: random.Random) -> tuple[bytes, bytes, bytes]:
    """A file, and two versions of it."""
    base = some_text(rng)
    newline = rng.random() < 0.9
    sides = []
    for _ in range(2):
        end = newline if rng.random() < 0.93 else not newline
        sides.append(joined(edited(rng, base, rng.choice([1, 1, 2, 3])), end))
    return joined(base, newline), sides[0], sides[1]


def some_tree() -> Files:
    def text(tag: bytes) -> bytes:
        return b"".join(b"%s line %d\n" % (tag, n) for n in range(12))

    return {
        b"a": (FILE, text(b"a")),
        b"b": (FILE, text(b"b")),
        b"dir/c": (FILE, text(b"c")),
        b"dir/d": (EXECUTABLE, text(b"d")),
        b"link": (LINK, b"target"),
        b"empty": (FILE, b""),
        b"bin": (FILE, b"\0\1\2 binary"),
    }


KINDS = ["edit", "edit", "mode", "delete", "move", "move", "add", "link", "text", "binary"]
KINDS += ["folder", "swap"]


def changed_tree(rng: random.Random, base: Files) -> Files:
    """Files edited, moved, deleted, added, made links or executable at random."""
    files = dict(base)
    for _ in range(rng.choice([1, 1, 2])):
        path = rng.choice(sorted(files))
        mode, data = files[path]
        free = [p for p in (b"new", b"dir/new", b"other/x", path + b".x") if _free(files, p)]
        what = rng.choice(KINDS)
        if what in ("edit", "binary") and mode != LINK:
            lines = edited(rng, data.split(b"\n"), 1)
            files[path] = (mode, (b"\0" if what == "binary" else b"") + b"\n".join(lines))
        elif what == "mode" and mode != LINK:
            files[path] = (EXECUTABLE if mode == FILE else FILE, data)
        elif what == "delete" and len(files) > 2:
            del files[path]
        elif what == "move" and free:
            del files[path]
            grown = data + b"more\n" if mode != LINK and rng.random() < 0.5 else data
            files[rng.choice(free)] = (mode, grown)
        elif what == "add" and free:
            files[rng.choice(free)] = (FILE, rng.choice([b"one\n", b"two\nthree\n"]))
        elif what == "link":
            files[path] = (LINK, rng.choice([b"here", b"there"]))
        elif what == "text":
            files[path] = (FILE, b"another\nfile\n")
        elif what == "folder":
            for name in [n for n in files if n.startswith(b"dir/")]:
                if _free(files, b"moved/" + name[4:]):
                    files[b"moved/" + name[4:]] = files.pop(name)
        elif what == "swap" and path != b"dir" and len(files) > 2:
            del files[path]
            if _free(files, path + b"/sub"):
                files[path + b"/sub"] = (FILE, b"sub\n")
    return files


def _free(files: Files, path: bytes) -> bool:
    return not any(
        path == n or n.startswith(path + b"/") or path.startswith(n + b"/") for n in files
    )


__all__ = ["Lab", "changed_tree", "parse_diff", "some_tree", "three_texts"]
