"""Git diffs as values: strictly parsed, so that what is wrong is said with its line."""

from __future__ import annotations

import re

from hexpatch import plaindiff
from hexpatch.binpatch import BadBinary, BinaryHunk, parse_binary
from hexpatch.diffpath import QUOTED, bare, check_path, halves, shown, unquote
from hexpatch.errors import HexpatchError
from hexpatch.filediff import FileDiff, Hunk, file_mode, has_content
from hexpatch.hunks import Lines, Section

START = b"diff --git "
_USUAL = re.compile(
    rb"diff --git a/([^\s\"]+) b/\1\nindex ([0-9a-f]{4,64})\.\.([0-9a-f]{4,64}) (\d{6})\n"
    rb"--- a/\1\n\+\+\+ b/\1\n(?=@@ -)"
)
_INDEX = re.compile(rb"index ([0-9a-f]{4,64})\.\.([0-9a-f]{4,64})(?: (\d{6}))?\Z")
_HEADERS = (
    (b"new file mode ", "new mode"),
    (b"deleted file mode ", "old mode"),
    (b"old mode ", "old mode"),
    (b"new mode ", "new mode"),
    (b"similarity index ", "similarity"),
    (b"dissimilarity index ", "dissimilarity"),
    (b"rename from ", "rename from"),
    (b"rename to ", "rename to"),
    (b"copy from ", "copy from"),
    (b"copy to ", "copy to"),
)
_PREFIX_HINT = "make it again with `git -c diff.noprefix=false -c diff.mnemonicPrefix=false`"


def parse_diff(data: bytes, name: str) -> tuple[FileDiff, ...]:
    """Read a diff; text around the sections is skipped, as git does. Strict in them."""
    start = next_section(data, 0, name, 0)
    if start == len(data) and data.strip():
        raise HexpatchError(f"{name}: no diff found")
    return parse_sections(data, start, 0, name, 0)


def next_section(data: bytes, at: int, name: str, before: int) -> int:
    """Offset of the next file's section from `at` on, the end of the data if there is none."""
    if data.startswith(START, at):
        return at
    start = data.find(b"\n" + START, max(at - 1, 0)) + 1 or len(data)
    plain = plaindiff.find(data, at, start, name, before)
    return start if plain is None else plain


def parse_sections(
    data: bytes, start: int, base: int, name: str, before: int
) -> tuple[FileDiff, ...]:
    """Read the sections from `start` on; their ranges count from `base`.

    `before` lines of the file are not in `data`.
    """
    found: list[FileDiff] = []
    while start < len(data):
        stop = data.find(b"\n" + START, start) + 1 or len(data)
        stop = plaindiff.stop_of(data, start, stop)
        kind = _FileSection if data.startswith(START, start) else plaindiff.PlainSection
        found.append(kind(data, start, stop, name, before).read(base))
        start = next_section(data, base + found[-1].end, name, before)
    return tuple(found)


class _FileSection(Section):
    """A section with its header lines."""

    def read(self, base: int) -> FileDiff:
        """The file's diff; its range counts from `base`."""
        usual = _USUAL.match(self.data, self.start, self.stop)
        if usual is None:
            return self.read_unusual(base)
        path, old_id, new_id, mode = usual.groups()
        check_path(path, self.name)
        self.label = path
        self.skipped = 4
        ids = old_id.decode(), new_id.decode()
        hunks = self.hunks()
        end = self.end(True) - base
        return FileDiff(
            "modify", path, path, file_mode(mode), None, *ids, None, hunks, None, False,
            self.start - base, end,
        )  # fmt: skip

    def read_unusual(self, base: int) -> FileDiff:
        """Any section: also new files, renames, modes, binary data."""
        binary_at = self.data.find(b"\nGIT binary patch\n", self.start, self.body)
        head = self.body if binary_at < 0 else binary_at + 17
        self.lines = self.data[self.start : head].split(b"\n")
        if not self.lines[-1]:
            self.lines.pop()
        self.at = 1
        rest = self.label = self.lines[0][len(START) :]
        if rest.endswith(b"\r"):
            self.fail("the diff has CRLF line ends", hint=plaindiff.NO_CRLF)
        if not rest.startswith((b"a/", b'"a/')) or not (b" b/" in rest or b' "b/' in rest):
            self.fail("the paths have no a/ and b/ prefixes", hint=_PREFIX_HINT)
        said = self.head()
        pair = self.names()
        kind, old, new = self.kind(said, pair, rest)
        self.label = new or old or b""
        hunks: tuple[Hunk, ...] = ()
        binary = None
        missing = False
        line = self.line(self.at)
        if line == b"GIT binary patch":
            binary = self.binary()
        elif line.startswith((b"Binary files ", b"Files ")) and line.endswith(b" differ"):
            missing = True
            self.at += 1
        elif self.body < self.stop:
            if self.at != len(self.lines):
                self.fail("an unknown line before the hunk")
            hunks = self.hunks()
        elif line.startswith((b"+", b"--- ", b" ")):
            self.fail("an unknown line after the header")
        self.check(kind, said, hunks, bool(binary) or missing, pair is not None)
        similarity = said.get("similarity")
        return FileDiff(
            kind,
            old,
            new,
            file_mode(said.get("old mode")),
            file_mode(said.get("new mode")),
            said.get("old id", b"").decode(),
            said.get("new id", b"").decode(),
            None if similarity is None else int(similarity),
            hunks,
            binary,
            missing,
            self.start - base,
            self.end(bool(hunks)) - base,
        )

    def binary(self) -> tuple[BinaryHunk, BinaryHunk | None]:
        """The binary data; what comes behind it is in `lines` then."""
        every = Lines(self.data, self.start, self.body)
        try:
            found, at = parse_binary(every, self.at + 1)
        except BadBinary as error:
            self.skipped = min(error.at, len(every) - 1) - self.at
            self.fail(error.text)
        self.lines, self.skipped, self.at = every[at:], at, 0
        return found

    def head(self) -> dict[str, bytes]:
        """The extended header lines."""
        said: dict[str, bytes] = {}
        while self.at < len(self.lines):
            line = self.lines[self.at]
            if line.startswith(b"index "):
                match = _INDEX.match(line)
                if match is None:
                    self.fail("the index line is damaged")
                said["old id"], said["new id"] = match[1], match[2]
                if match[3] is not None:
                    said.setdefault("old mode", match[3])
            else:
                for start, key in _HEADERS:
                    if line.startswith(start):
                        said[key] = line[len(start) :]
                        break
                else:
                    return said
                if start.endswith(b"mode ") and file_mode(said[key]) is None:
                    self.fail("an unknown file mode")
                if key == "similarity" and not re.fullmatch(rb"\d{1,3}%", said[key]):
                    self.fail("the similarity is damaged")
                if key == "similarity":
                    said[key] = said[key][:-1]
                if start.startswith((b"new file", b"deleted")):
                    said["add" if start.startswith(b"new") else "delete"] = b""
            self.at += 1
        return said

    def names(self) -> tuple[bytes | None, bytes | None] | None:
        """The paths in the ---/+++ lines; None for /dev/null; nothing where there are none."""
        first, second = self.line(self.at), self.line(self.at + 1)
        if not first.startswith(b"--- "):
            return None
        if not second.startswith(b"+++ ") or self.line(self.at + 2) or self.body == self.stop:
            self.fail("a --- line without its +++ line and hunk")
        old = self.side(first[4:], b"a/")
        new = self.side(second[4:], b"b/")
        self.at += 2
        return old, new

    def side(self, text: bytes, prefix: bytes) -> bytes | None:
        if text[:1] == b'"':
            match = QUOTED.match(text)
            path = unquote(match[1]) if match else b""
        else:
            path = text.split(b"\t", 1)[0]
        if path == b"/dev/null":
            return None
        if not path.startswith(prefix):
            self.fail(f"the path {shown(path)} has no {prefix.decode()} prefix", hint=_PREFIX_HINT)
        return path[2:]

    def kind(
        self, said: dict[str, bytes], pair: tuple[bytes | None, bytes | None] | None, rest: bytes
    ) -> tuple[str, bytes | None, bytes | None]:
        """Kind, old and new path; all lines that name them must agree."""
        kind = "modify"
        for word in ("rename", "copy"):
            if f"{word} from" in said or f"{word} to" in said:
                ends = said.get(f"{word} from"), said.get(f"{word} to")
                if ends[0] is None or ends[1] is None or kind != "modify":
                    self.fail("the rename or copy lines do not go together")
                kind = word
                moved = bare(ends[0]), bare(ends[1])
                if pair is not None and pair != moved:
                    self.fail("the ---/+++ lines and the rename or copy lines disagree")
                pair = moved
        for word in ("add", "delete"):
            if word in said:
                kind = word if kind == "modify" else "bad"
        both = pair if pair is not None else halves(rest)
        if both is None:
            self.fail("the paths in the `diff --git` line can't be told apart")
        old, new = both
        old = (new or b"") if old is None else old
        new = old if new is None else new
        if (kind in ("modify", "add", "delete") and old != new) or kind == "bad":
            self.fail("the header lines contradict each other")
        if pair is not None and [side is None for side in pair] != [
            kind == "add",
            kind == "delete",
        ]:
            self.fail("the header lines contradict each other")
        if rest != b"a/" + old + b" b/" + new and halves(rest) != (old, new):
            self.fail("the `diff --git` line and the lines after it name different files")
        for path in {old, new}:
            check_path(path, self.name)
        return kind, None if kind == "add" else old, None if kind == "delete" else new

    def check(
        self, kind: str, said: dict[str, bytes], hunks: tuple[Hunk, ...], binary: bool, named: bool
    ) -> None:
        """Refuse what contradicts itself, and a section that changes nothing."""
        self.one_sided(kind, hunks)
        ids = said.get("old id", b""), said.get("new id", b"")
        if not hunks and not binary and (named or any(map(has_content, ids))):
            self.fail("the hunks are missing")
        if kind == "modify":
            if "new mode" not in said and not hunks and not binary:
                self.fail("the section changes nothing")
            if "new mode" in said and "old mode" not in said:
                self.fail("a new mode without an old mode")
