"""import: mails as programs and lists send them give what `git am` gives, or are refused."""

from __future__ import annotations

import base64
import quopri
import re
import subprocess
from pathlib import Path

import pytest
from conftest import HOST, World, edit, git
from fieldworld import state

from hexpatch.patchfile import parse_diff

HEAD = (
    "From: Dév One <dev@example.org>\nDate: Tue, 5 Mar 2019 01:02:03 +0500\n"
    "Subject: [PATCH] x : y\nMIME-Version: 1.0\n"
)
MESSAGE = "Ein Grund, ä.\n\nZweiter Absatz.\n---\nnotes of this version\n\n"


def changed(world: World) -> str:
    """A commit that edits, adds and deletes on top of v1; its diff."""
    git(world.upstream, "checkout", "-q", "-B", "w", "v1")
    edit(world.upstream / HOST, "host 10\n", "host ten = 10\n")
    edit(world.upstream / HOST, "host 40\n", "host 40 ä\n")
    (world.upstream / "new.txt").write_text("one\n\n two\n" + "long" * 40 + "\n")
    git(world.upstream, "rm", "-q", "README.md")
    git(world.upstream, "add", "-A")
    git(world.upstream, "commit", "-q", "-m", "x : y\n\nEin Grund, ä.\n\nZweiter Absatz.")
    return git(world.upstream, "diff", "v1", "HEAD") + "\n"


def by_git(world: World, mail: Path, *options: str) -> bytes:
    """Tree, author, date and message that `git am` makes of a mail."""
    git(world.upstream, "checkout", "-q", "-B", "am", "v1")
    git(world.upstream, "am", "-q", "--keep-non-patch", *options, str(mail))
    return told(world.upstream)


def told(repo: Path) -> bytes:
    line = "--format=%T%n%an <%ae>%n%ad%n%B"
    log = ["git", "-C", str(repo), "log", "-1", "--date=raw", line]
    return subprocess.run(log, check=True, capture_output=True).stdout


def same_as_git(world: World, data: str | bytes, *options: str) -> None:
    """Both take the mail, and the commits say the same."""
    mail = world.root / "m.mail"
    mail.write_bytes(data if isinstance(data, bytes) else data.encode())
    world.ok("import", str(mail))
    world.ok("apply")
    assert told(world.checkout) == by_git(world, mail, *options)


def refused(world: World, data: str | bytes, *says: str) -> str:
    """The mail is refused in these words, and nothing is changed."""
    mail = world.root / "m.mail"
    mail.write_bytes(data if isinstance(data, bytes) else data.encode())
    before = state(world)
    ran = world.fails("import", str(mail))
    assert state(world) == before
    for words in says:
        assert words in ran.err, ran.err
    return ran.err


def text(body: str, *fields: str, kind: str = "text/plain; charset=UTF-8") -> str:
    return "\n".join([HEAD + f"Content-Type: {kind}", *fields, "", body])


# -- parts ----------------------------------------------------------------------------------


@pytest.mark.parametrize("option", ["--attach", "--inline", "--attach=a(b)c+"])
def test_patches_attached_by_git(world: World, option: str) -> None:
    changed(world)
    git(world.upstream, "tag", "my")
    same_as_git(world, git(world.upstream, "format-patch", "-1", option, "--stdout", "my") + "\n")


def parts(*given: str, kind: str = "mixed", boundary: str = "=_b?1") -> str:
    inside = "".join(f"--{boundary}\n{part}\n" for part in given)
    return text(
        f"This is a multi-part message.\n{inside}--{boundary}--\n",
        kind=f'multipart/{kind};\n boundary="{boundary}"',
    )


PLAIN = "Content-Type: text/plain; charset=UTF-8\n"
HTML = "Content-Type: text/html; charset=UTF-8\n\n<pre>diff --git a/f b/f</pre>\n"
SIGNED = "Content-Type: application/pgp-signature\n\n-----BEGIN PGP SIGNATURE-----\n\nabc\n"


def coded(body: str) -> str:
    return base64.encodebytes(body.encode()).decode()


@pytest.mark.parametrize("form", ["signed", "alternative", "nested", "attached", "footer"])
def test_mails_of_several_parts(world: World, form: str) -> None:
    diff = changed(world)
    body = f"{PLAIN}\n{MESSAGE}{diff}"
    attached = "Content-Type: application/octet-stream; name=x.patch\n"
    attached += f"Content-Transfer-Encoding: base64\n\n{coded(diff)}"
    data = {
        "signed": parts(body, SIGNED, kind="signed"),
        "alternative": parts(body, HTML, kind="alternative"),
        "nested": parts(
            "Content-Type: multipart/mixed; boundary=in\n\n\n"
            f"--in\n{PLAIN}\n{MESSAGE}\n--in\n{PLAIN}\n{diff}\n--in--\n",
            SIGNED,
            kind="signed",
        ),
        "attached": parts(f"{PLAIN}\n{MESSAGE}", attached),
        "footer": parts(body, f"{PLAIN}\n____\nlist mailing list\nlist@example.org\n"),
    }[form]
    same_as_git(world, data)


def test_bytes_of_parts_stay_as_they_are(world: World) -> None:
    """Latin-1, CR and a missing newline in the diff; the message's charset is its part's."""
    diff = b"diff --git a/n b/n\nnew file mode 100644\n--- /dev/null\n+++ b/n\n"
    diff += b"@@ -0,0 +1,3 @@\n+\xe4\x00\xff\n+a\r\n+\x0cb\x85\n\\ No newline at end of file\n"
    latin = "Content-Type: text/plain; charset=ISO-8859-1\n"
    head = parts(f"{latin}\nGrund: MESSAGE\n---\n", f"{PLAIN}\nDIFF").encode()
    data = head.replace(b"MESSAGE", b"\xe4\xf6").replace(b"DIFF", diff)
    same_as_git(world, data, "--keep-cr")
    assert (world.checkout / "n").read_bytes() == b"\xe4\x00\xff\na\r\n\x0cb\x85"


def test_mails_in_mails_are_refused_with_what_to_do(world: World) -> None:
    changed(world)
    whole = git(world.upstream, "format-patch", "-1", "--stdout") + "\n"
    said = "save the attach"
    mail = whole.split("\n", 1)[1]
    refused(world, parts(f"{PLAIN}\nsee below\n", f"Content-Type: message/rfc822\n\n{mail}"), said)
    patch = f"Content-Type: text/x-patch\n\n{whole}"
    refused(world, parts(f"{PLAIN}\nsee below\n", patch, patch), "a mail of its own", said)
    refused(world, parts(HTML, kind="alternative"), "no text in it")
    refused(world, text("<pre>diff --git a/f b/f", kind="text/html"), "an HTML mail")
    world.root.joinpath("x.patch").write_text(whole)
    world.ok("import", "x.patch")


# -- encodings ------------------------------------------------------------------------------

FOOTERS = ["", "_______________________________\nlist mailing list\nlist@example.org\n", "\nlist\n"]


@pytest.mark.slow
@pytest.mark.parametrize("footer", FOOTERS)
@pytest.mark.parametrize("pad", ["", "x", "xx"])
def test_base64_with_a_lists_footer_behind_it(world: World, footer: str, pad: str) -> None:
    body = MESSAGE + changed(world) + f"-- \n2.39{pad}"
    same_as_git(world, text(coded(body) + footer, "Content-Transfer-Encoding: base64"))


def test_base64_with_a_hole_is_no_base64_with_a_footer(world: World) -> None:
    lines = coded(MESSAGE + changed(world)).split("\n")
    for at in (0, 3, len(lines) - 3):
        for bad in ("", "*" + lines[at][1:]):
            body = "\n".join([*lines[:at], bad, *lines[at + 1 :]])
            if at or bad:
                data = text(body, "Content-Transfer-Encoding: base64")
                refused(world, data, "the base64 text is damaged")


@pytest.mark.parametrize("encoding", ["base64", "quoted-printable"])
def test_crlf_inside_an_encoding_is_the_transports(world: World, encoding: str) -> None:
    """As in a mailbox with CRLF; `git am` needs --quoted-cr=strip for it."""
    body = MESSAGE + changed(world)
    made = coded(body.replace("\n", "\r\n"))
    if encoding == "quoted-printable":
        made = re.sub(r"(?<!=)\n", "=0D\n", quopri.encodestring(body.encode()).decode())
    data = text(made, f"Content-Transfer-Encoding: {encoding}")
    same_as_git(world, data, "--quoted-cr=strip")


def test_crlf_that_is_not_everywhere_has_a_hint_that_works(world: World) -> None:
    body = (MESSAGE + changed(world)).replace("\n", "\r\n") + "a footer\n"
    data = text(coded(body), "Content-Transfer-Encoding: base64")
    refused(world, data, "CRLF", "`git am --quoted-cr=strip` it in your clone")
    by_git(world, world.root / "m.mail", "--quoted-cr=strip")
    world.ok("import", "v1..am")
    world.ok("apply")
    assert told(world.checkout) == told(world.upstream)


@pytest.mark.parametrize("delsp", ["", "; delsp=yes"])
def test_flowed_mails_are_unstuffed(world: World, delsp: str) -> None:
    diff = changed(world)
    stuffed = "A soft \nline.\n > quoted\n---\n\n" + re.sub("(?m)^ ", "  ", diff)
    assert "\n \n" not in stuffed
    same_as_git(world, text(stuffed, kind=f"text/plain; format=flowed{delsp}"))


def test_a_diff_that_was_not_stuffed_is_taken_as_it_is(world: World) -> None:
    """Many programs say format=flowed of whatever they send. `git am` calls it corrupt."""
    data = text(MESSAGE + changed(world), kind="text/plain; format=flowed")
    (world.root / "m.mail").write_text(data)
    world.ok("import", "m.mail")
    world.ok("apply")
    assert told(world.checkout).split(b"\n")[0] == told(world.upstream).split(b"\n")[0]


def test_a_nul_in_the_message_is_refused(world: World) -> None:
    diff = changed(world)
    refused(world, text("a\0b\n---\n" + diff), "a NUL byte in the message")
    data = text(f"{MESSAGE}{diff}").replace("x : y", "=?UTF-8?q?x=00y?=")
    refused(world, data, "a NUL byte in the message")


# -- diff -u --------------------------------------------------------------------------------


def plain(diff: str) -> str:
    """What quilt writes: no lines of git's in it."""
    own = ("diff --git", "index ", "new file", "deleted file")
    return "".join(line for line in diff.splitlines(keepends=True) if not line.startswith(own))


EPOCHS = ["\t1970-01-01 01:00:00.000000000 +0100", "\t1969-12-31 19:00:00 -0500"]


@pytest.mark.parametrize("stamp", ["", "\t2019-03-05 01:02:03.5 +0500", " 2019-03-05 01:02:03"])
@pytest.mark.parametrize("between", ["", "Index: w/x\n=========\n", "diff -ruN a/x b/x\n"])
def test_a_plain_diff_with_a_and_b_is_read(world: World, stamp: str, between: str) -> None:
    diff = plain(changed(world)).replace(f"a/{HOST}\n", f"a/{HOST}{stamp}\n")
    diff = diff.replace(f"b/{HOST}\n", f"b/{HOST}{stamp}\n")
    diff = diff.replace("--- a/", f"{between}--- a/").replace("--- /", f"{between}--- /")
    same_as_git(world, text(MESSAGE + diff + "-- \n2.39\n"))


@pytest.mark.parametrize("epoch", EPOCHS)
def test_the_epoch_stands_for_a_file_that_is_not_there(world: World, epoch: str) -> None:
    diff = plain(changed(world))
    diff = diff.replace("--- /dev/null", f"--- a/new.txt{epoch}")
    diff = diff.replace("+++ /dev/null", f"+++ b/README.md{epoch}")
    assert diff.count(epoch) == 2
    same_as_git(world, text(MESSAGE + diff))


def test_lines_in_hunks_that_look_like_a_plain_diff() -> None:
    """Removed `-- a/f` and added `++ b/f` before the next hunk are no header: counts tell."""
    hunks = "@@ -3 +3 @@\n--- a/f\n+++ b/f\n@@ -9,0 +10 @@\n+x\n"
    plain_one = f"--- a/q\n+++ b/q\n{hunks}"
    by_git_one = f"diff --git a/g b/g\n{plain_one.replace('/q', '/g')}"
    for first, second in ((plain_one, by_git_one), (by_git_one, plain_one), (plain_one, plain_one)):
        found = parse_diff(f"{first}{second}".encode(), "p")
        assert [len(d.hunks) for d in found] == [2, 2]
        assert [d.hunks[0].old for d in found] == [[b"-- a/f"]] * 2
        assert [d.end - d.start for d in found] == [len(first), len(second)]


@pytest.mark.parametrize("level", ["-p0", "-p1"])
def test_other_paths_are_refused_with_a_hint_that_works(world: World, level: str) -> None:
    diff = plain(changed(world))
    new = {"-p0": ("--- ", "+++ "), "-p1": ("--- llama.orig/", "+++ llama/")}[level]
    diff = diff.replace("--- a/", new[0]).replace("+++ b/", new[1])
    refused(world, text(MESSAGE + diff), "`git am -p0 FILE` in the checkout", "without -p0 where")
    said = "`git am FILE`" if level == "-p1" else "`git am -p0 FILE`"
    refused(world, text(MESSAGE + diff[diff.index(f"{new[0]}ggml") :]), f"{said} in the checkout")
    (world.root / "m.mail").write_text(text(MESSAGE + diff))
    world.ok("apply")
    world.git("am", "-q", level, "--keep-non-patch", str(world.root / "m.mail"))
    world.ok("refresh")
    assert told(world.checkout) == by_git(world, world.root / "m.mail", level)


@pytest.mark.parametrize(
    ("diff", "words"),
    [
        ("--- a/f\n+++ b/g\n@@ -1 +1 @@\n-a\n+b\n", "name different files"),
        ("--- /dev/null\n+++ /dev/null\n@@ -1 +1 @@\n-a\n+b\n", "without a `diff --git` line"),
        ("--- /dev/null\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n", "a new file, but a hunk has old lines"),
        ("--- a/f\n+++ /dev/null\n@@ -1 +1 @@\n-a\n+b\n", "but a hunk has new lines"),
        ("--- a/../f\n+++ b/../f\n@@ -1 +1 @@\n-a\n+b\n", "unsafe path"),
        ("--- a/f\r\n+++ b/f\r\n@@ -1 +1 @@\r\n-a\r\n+b\r\n", "CRLF"),
        ("--- a/f\n+++ b/f\n@@ -1,2 +1 @@\n-a\n+b\n", "is cut off"),
        ("--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n+c\n", "more lines than"),
    ],
)
def test_broken_plain_diffs(world: World, diff: str, words: str) -> None:
    refused(world, text(MESSAGE + diff), words)


# -- no diff --------------------------------------------------------------------------------


def lost() -> dict[str, str]:
    a = "--- {}f\t2019-03-05\n"
    context = (
        "*** f\t2019-03-05\n" + a.format("g/") + "*" * 15 + "\n*** 1 ****\n! a\n--- 1 ----\n! b\n"
    )
    normal = "5c5\n< a\n---\n> b\n"
    unified = "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n"
    quoted = "".join(f"> {line}\n" for line in unified.splitlines())
    return {
        "context": f"why\n---\n{context}",
        "context in the message": f"why\n\n{context}",
        "normal": f"why\n---\n{normal}",
        "normal in the message": f"why\n\n{normal}",
        "several lines": "why\n\n1,2d0\n< a\n< b\n",
        "no-break blanks": f"why\n---\n{unified}".replace(" ", "\xa0"),
        "latin no-break blanks in the message": f"why\n\n{unified}".replace(" ", "\xa0"),
        "quoted": f"why\n---\n{quoted}",
        "quoted in the message": f"why\n\n{quoted}",
        "hunks alone": "why\n\n@@ -1 +1 @@\n-a\n+b\n",
        "text": "why\n---\nThe patch is at example.org/p\n",
        "diffstat": "why\n---\n f | 1 +\n 1 file changed, 1 insertion(+)\n",
        "svn": "why\n\nIndex: f\n=====\n",
        "coloured": "why\n---\n\x1b[1mdiff --git a/f b/f\x1b[m\n",
    }


@pytest.mark.parametrize("how", lost())
@pytest.mark.parametrize("encoding", ["8bit", "base64"])
def test_a_lost_diff_is_no_empty_patch(world: World, how: str, encoding: str) -> None:
    body = lost()[how]
    raw = body.encode("latin-1" if how.startswith("latin") else "utf-8")
    data = base64.encodebytes(raw) if encoding == "base64" else raw
    head = text("", f"Content-Transfer-Encoding: {encoding}").encode()
    refused(world, head + data)


@pytest.mark.parametrize(
    "body",
    ["", "why\n", "why\n---\n", "why\n---\n\n \n", "why\n---\n-- \n2.39\n\n", "why\n-- \n2.39\n"],
)
def test_an_empty_patch_on_purpose(world: World, body: str) -> None:
    (world.root / "m.mail").write_text(text(body))
    world.ok("import", "m.mail")
    world.ok("apply")
    assert world.git("log", "-1", "--format=%B").rstrip() == f"x : y\n\n{body[:3]}".rstrip()


def test_notes_may_speak_of_diffs_before_a_diff(world: World) -> None:
    notes = "v2: as asked:\n> diff --git a/f b/f\n> @@ -1 +1 @@\n    diff --git a/f b/f\n5c5\n\n"
    same_as_git(world, text(MESSAGE + notes + changed(world)))


def test_a_context_diff_beside_a_readable_one_is_not_dropped(world: World) -> None:
    refused(world, text(MESSAGE + changed(world) + lost()["context"][8:]), "a context diff")
