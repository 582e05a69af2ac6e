"""Mails: read as `git mailinfo -b -u` and `git am` read them; written so that nothing is lost."""

from __future__ import annotations

import base64
import os
import re
import subprocess
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hexpatch import maildate
from hexpatch.errors import HexpatchError
from hexpatch.header import is_scissors, stripspace
from hexpatch.patchfile import PatchFile, parse_patch, parse_patch_headers, render_patch

FIELD = Path(__file__).parent / "field"
DIFF = b"diff --git a/f.txt b/f.txt\nindex 5626abf..814f4a4 100644\n--- a/f.txt\n+++ b/f.txt\n"
DIFF += b"@@ -1 +1,2 @@\n one\n+two\n"


def git(folder: Path, *args: str, data: bytes | None = None, **env: str) -> bytes:
    done = subprocess.run(
        ["git", *args], cwd=folder, input=data, capture_output=True, check=False,
        env={**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", **env},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def mailinfo(folder: Path, data: bytes, *options: str) -> dict[str, str]:
    """What git reads: author, email, subject, date and body."""
    told = git(folder, "mailinfo", "-b", "-u", *options, "msg", "patch", data=data).decode()
    got = {
        key: "\n".join(re.findall(f"^{key}: (.*)$", told, re.MULTILINE))
        for key in ("Author", "Email", "Subject", "Date")
    }
    body = git(folder, "stripspace", data=(folder / "msg").read_bytes()).decode()
    ident = git(
        folder, "var", "GIT_AUTHOR_IDENT",
        GIT_AUTHOR_DATE=got["Date"], GIT_AUTHOR_NAME="x", GIT_AUTHOR_EMAIL="x",
    )  # fmt: skip
    got["Date"] = ident.decode().split("> ")[1].strip()
    return got | {"Body": body.removesuffix("\n")}


def same_as_git(folder: Path, data: bytes, *options: str) -> PatchFile:
    patch = parse_patch(data, "p", scissors="--scissors" in options)
    git_says = mailinfo(folder, data, *options)
    assert git_says == {
        "Author": patch.author_name,
        "Email": patch.author_email,
        "Subject": patch.subject,
        "Date": patch.author_date,
        "Body": patch.body,
    }
    return patch


def mails() -> list[bytes]:
    found = []
    for path in sorted(FIELD.rglob("*")):
        if "input" in path.parts or path.suffix not in (".patch", ".mbox"):
            continue
        data = path.read_bytes()
        if b"\nSubject:" not in data[:600] and b"\nSubject:" not in data[:600].replace(b"\r", b""):
            continue
        found += [m for m in re.split(rb"(?m)^(?=From 0{40} )", data) if m]
    return found


MAILS = list(dict.fromkeys(mails()))


@pytest.mark.parametrize("data", MAILS, ids=range(len(MAILS)))
def test_field_mails_are_read_as_git_reads_them(tmp_path: Path, data: bytes) -> None:
    plain = data.replace(b"\r\n", b"\n") if data.split(b"\n")[0].endswith(b"\r") else data
    signature = b"-- \n2.39.5"
    if b"\n---\n" not in plain:  # git keeps the signature of a mail without a patch
        plain = plain[: plain.index(signature)] if signature in plain else plain
    for options in ((), ("--scissors",)):
        patch = parse_patch(data, "p", scissors=bool(options))
        assert patch == same_as_git(tmp_path, plain, *options)
        again = parse_patch(render_patch(patch), "again")
        assert again == patch
        head = parse_patch_headers(data, "p")
        assert options or head == patch._replace(diffs=(), diff=b"")


def mail(body: bytes = b"", *fields: bytes, tail: bytes = b"---\n\n" + DIFF) -> bytes:
    """A mail; fields given replace the usual ones."""
    usual = {
        b"from": b"From: Dev One <dev@example.org>",
        b"date": b"Date: Mon, 1 Jan 2024 00:47:40 +0000",
        b"subject": b"Subject: [PATCH] htp : five rows",
    }
    for field in fields:
        usual[field.split(b":")[0].lower()] = field
    return b"\n".join(usual.values()) + b"\n\n" + body + tail


# -- fields ---------------------------------------------------------------------------------

SUBJECTS = [
    "[PATCH] a", "[PATCH v3 2/5] [hexagon][v75] htp : x", "Re: [PATCH] a", "RE: re: a", "Re:a",
    "[hexagon] [PATCH 1/2] a", "[RFC PATCH] a", "[PATCH RFC 0/3] [x] a", "a [PATCH] b", "[x]: a",
    "[x] : a", ": a", "[unclosed a", "[PATCH", "[]a", "[ ] a", "rework a", "r", "re", "a  b\t c",
    "[PATCH] ", "[patch] a", "[x]PATCH a", "a:b", "[a][b]  [c] d", "=?UTF-8?q?a=20b?=",
    "[PATCH] =?UTF-8?q?=C3=A4?= b", "=?utf-8?B?w6Q=?= =?utf-8?b?w7Y=?=", "x=?utf-8?q?=C3=BC?=y",
    "=?utf-8?q?=C3=BC?= \n =?utf-8?q?_x_?=\n  tail", "=?ISO-8859-1?Q?D=E9v_=DCn?=",
    "=?utf-8?q?=C3?= =?utf-8?q?=A4?=", "=?utf-8?q?[PATCH]_a?=", "50% = x",
    "=?iso-8859-15?q?=A4?=", "=?utf-8?q?a?=   b", "one\n two\n\tthree",
]  # fmt: skip


@pytest.mark.parametrize("subject", SUBJECTS)
def test_subjects(tmp_path: Path, subject: str) -> None:
    same_as_git(tmp_path, mail(b"", b"Subject: " + subject.encode()))


@pytest.mark.parametrize(
    "subject", ["=?utf-8?x?a?=", "=?utf-8?q?unclosed", "a =?b", "=?no-such?q?=E4?="]
)
def test_bad_encoded_words_stay_or_are_latin1(subject: str) -> None:
    """Git refuses such a mail."""
    got = parse_patch(mail(b"", b"Subject: " + subject.encode()), "p").subject
    assert got == ("ä" if "no-such" in subject else subject)


AUTHORS = [
    "Dev One <dev@example.org>", "dev@example.org", "<dev@example.org>",
    "dev@example.org (Dev One)",
    '"One, Dev" <dev@example.org>', r'"De\"v One" <d@x.org>', "Dev (zzz) One <d@x.org> (Comment)",
    "Dev One <devone>", "=?ISO-8859-1?Q?D=E9v_=DCn?= <dev@example.org>", "Dév Ün <d@x.org>",
    "=?UTF-8?q?D=C3=A9v?= =?UTF-8?q?_One?= <d@x.org>", "Dev  \n One  <d@x.org>",
    "  Dev <d@x.org>  ",
    "=?UTF-8?B?w5xuLCBEw6l2?= <d@x.org>", "Dev.One <d@x.org>", "dev@x.org <d@x.org>",
    "Dev One<d@x.org>",
    r"Dev \(x\) (a\)b) One <d@x.org>", "Dev 'One' <d@x.org>",
]  # fmt: skip


@pytest.mark.parametrize("author", AUTHORS)
def test_authors(tmp_path: Path, author: str) -> None:
    same_as_git(tmp_path, mail(b"", b"From: " + author.encode()))


def test_short_and_long_names_stay(tmp_path: Path) -> None:
    """Git puts the address in the place of a name with under 3 or over 60 bytes; we don't."""
    for name in ("Li", "王", "X" * 70):
        patch = parse_patch(mail(b"", f"From: {name} <li@x.org>".encode()), "p")
        assert patch.author == f"{name} <li@x.org>"


DATES = [
    "Mon, 1 Jan 2024 00:47:40 +0000", "Mon, 01 Jan 2024 00:47:40 +0530",
    "1 Jan 2024 00:47:40 -0800",
    "2024-01-01 00:47:40 +0100", "2024-01-01T00:47:40Z", "2024-01-01T00:47:40+02:00",
    "Mon Jan 1 00:47:40 2024 -0330", "1704070060 +0100", "@1704070060 +0000", "@0 +0000",
    "Sun, 31 Dec 2023 23:59:59 -0000", "Thu, 29 Feb 2024 12:00:00 +1400",
    "Mon, 1 Jan 2024 00:47:40 GMT",
    "Mon, 1 Jan 2024 00:47:40 EST", "Mon, 1 Jan 2024 00:47:40 +0000 (UTC)",
    "2024-01-01 00:47:40.123 +0000", "Mon,  1 Jan 2024 00:47:40 +0000",
    "Mon, 1 Jan 2024 00:47 +0100",
]  # fmt: skip


@pytest.mark.parametrize("date", DATES)
def test_dates(tmp_path: Path, date: str) -> None:
    same_as_git(tmp_path, mail(b"", b"Date: " + date.encode()))


@pytest.mark.parametrize(
    "date", ["yesterday", "", "Mon, 32 Jan 2024 00:47:40 +0000", "2024-13-01 1:1"]
)
def test_bad_dates(date: str) -> None:
    with pytest.raises(HexpatchError, match=r"p\.patch: unreadable date: "):
        parse_patch(mail(b"", b"Date: " + date.encode()), "p.patch")


@given(st.integers(-(2**35), 2**37), st.integers(-14 * 60, 14 * 60))
def test_mail_dates_round_trip(unix: int, zone: int) -> None:
    stamp = f"{unix} {'-' if zone < 0 else '+'}{abs(zone) // 60:02}{abs(zone) % 60:02}"
    made = maildate.mail_date(stamp)
    assert maildate.parse_date(made) == stamp
    when = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(seconds=unix)
    text = format_datetime(when.astimezone(timezone(timedelta(minutes=zone))))
    assert text.replace(", 0", ", ", 1).replace("-0000", "+0000") == made


# -- bodies ---------------------------------------------------------------------------------

BODIES = [
    "From: T <t@x.org>\n"
    ">From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001\n\tx\n",
    "A ten.\n", "\n\nA\n\n\n\nb  \n\n", "A\n-- \nsig\n", "Subject: x\n\nA\n",
    "From: Two <two@x.org>\n\nA\n",
    "From: Two <two@x.org>\n"
    "Date: Sun, 31 Dec 2023 09:00:00 +0000\nSubject: [PATCH] in\n  body\n\nA\n",
    "from: Two <two@x.org>\nA\n", "From: T <t@x.org>\nFrom: U <u@x.org>\n\nA\n",
    "A\nFrom: Two <two@x.org>\n",
    "\n\nSubject: late\n\n\nSubject: not this\n", "[PATCH] in body\nA\n",
    "Subject: =?utf-8?q?=C3=A4?=\n\nA\n",
    ">From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001\nSubject: y\n\nA\n",
    "Thanks\n\n-- >8 --\nSubject: cut\n\nA\n", "-- 8< -- cut here -- 8< --\nA\n",
    "A\n--->8---\nB\n",
    "Subject: gone\n\nhm\n-- >8 --\nA\n", "Subject: folded\n -- >8 --\nA\n", "- >8 \nA\n",
    "Subject:\n\nA\n", "Date: x\n", " From: Two <t@x.org>\nA\n", "A \t\r\nB\r\n", "tail\x0b\n",
]  # fmt: skip


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("options", [(), ("--scissors",)])
def test_bodies(tmp_path: Path, body: str, options: tuple[str, ...]) -> None:
    if body == "Date: x\n":
        body = "Date: 2024-01-01T00:00:00Z\n"
    same_as_git(tmp_path, mail(body.encode()), *options)


@pytest.mark.parametrize(
    "end",
    [
        b"---\n",
        b"---  \t\n",
        b"--- a/f.txt\n",
        b"Index: f\n",
        b"diff -u f g\n",
        b"---x\n",
        b"----\n",
        b"--\n",
    ],
)
def test_where_the_message_ends(tmp_path: Path, end: bytes) -> None:
    data = mail(b"A\n" + end + b"B\n", tail=b"\n" + DIFF)
    assert same_as_git(tmp_path, data).diff == DIFF


def test_charsets(tmp_path: Path) -> None:
    latin = "Die ä-Zeile fehlte.\n".encode("latin-1")
    kind = b"Content-Type: text/plain; charset="
    for fields in ((kind + b"ISO-8859-1",), (kind + b'"iso-8859-15"; format=flowed',)):
        patch = same_as_git(tmp_path, mail(latin, *fields))
        assert patch.body == "Die ä-Zeile fehlte."
    assert parse_patch(mail(latin, kind + b"UTF-8"), "p").body == "Die ä-Zeile fehlte."
    assert parse_patch(mail(latin, kind + b"no-such"), "p").body == "Die ä-Zeile fehlte."
    mixed = latin + "und ü\n".encode()  # git would keep the bytes as they are
    assert parse_patch(mail(mixed), "p").body == "Die ä-Zeile fehlte.\nund ü"
    raw = parse_patch(mail(b"", b"Subject: caf\xe9"), "p")
    assert raw.subject == "café"


@pytest.mark.parametrize("encoding", ["base64", "quoted-printable"])
def test_transfer_encodings(tmp_path: Path, encoding: str) -> None:
    odd = DIFF.replace(b"+two", b"+tw\xf6 = " + b"x" * 200).replace(b" one", b" one \t")
    body = "Ein ä = eins.\n".encode() + b"---\n\n" + odd
    if encoding == "base64":
        coded = base64.encodebytes(body)
    else:
        import quopri

        coded = quopri.encodestring(body)
    fields = (
        b"Content-Type: text/plain; charset=UTF-8",
        f"Content-Transfer-Encoding: {encoding}".encode(),
    )
    patch = same_as_git(tmp_path, mail(coded, *fields, tail=b""))
    assert patch.diff == odd
    assert patch.body == "Ein ä = eins."
    assert patch.diff in (tmp_path / "patch").read_bytes()


def test_crlf_mails_become_lf_and_lf_mails_keep_cr() -> None:
    crlf = mail(b"A\n").replace(b"\n", b"\r\n")
    assert parse_patch(crlf, "p") == parse_patch(mail(b"A\n"), "p")
    kept = mail(b"A\n").replace(b"+two\n", b"+two\r\n")
    assert b"+two\r\n" in parse_patch(kept, "p").diff
    assert parse_patch(b"\xef\xbb\xbf" + crlf, "p").subject == "htp : five rows"


@pytest.mark.parametrize(
    ("line", "cut"),
    [
        ("-- >8 --", True), ("-- 8< --", True), ("--->8---", True), ("-- >8 -- cut here", True),
        ("- - - >8 - - - remove everything above this line - - - >8 - - -", True),
        ("-- %< --", True), ("--- >8 ---", True), ("--- 8< --- cut here", True),
        ("- >8", False), ("--------", False), (">8", False),
        ("a long line with a >8 in it -- yes", False),
        ("", False), ("  -- >8 --  ", True),
    ],
)  # fmt: skip
def test_scissors(tmp_path: Path, line: str, cut: bool) -> None:
    assert is_scissors(line) is cut
    same_as_git(tmp_path, mail(f"above\n{line}\nbelow\n".encode()), "--scissors")


@given(st.text(st.sampled_from("a \t\n\r\x0b\u2028")))
@settings(max_examples=60, deadline=None)
def test_stripspace_is_gits(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    told = git(tmp_path_factory.getbasetemp(), "stripspace", data=text.encode()).decode()
    assert stripspace(text) == told.removesuffix("\n")


# -- not a mail -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("0004-zero-bytes.patch", "empty file"),
        ("0005-only-newlines.patch", "no diff found"),
        ("0006-prose.patch", "no diff found"),
        ("0007-diff-without-header.patch", "no mail header"),
    ],
)
def test_files_that_are_no_mails(name: str, words: str) -> None:
    data = (FIELD / "13-empty/input" / name).read_bytes()
    for read in (parse_patch, parse_patch_headers):
        with pytest.raises(HexpatchError) as caught:
            read(data, f"patches/{name}")
        assert caught.value.message.startswith(f"patches/{name}: {words}")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (mail().replace(b"Date", b"Dote"), "no Date header"),
        (mail().replace(b"Subject", b"Sabject"), "no Subject header"),
        (mail(b"", b"From: nobody"), "the From header has no address"),
        (mail(b"", b"Content-Type: multipart/mixed; boundary=x"), "attachments"),
        (mail(b"****", b"Content-Transfer-Encoding: base64", tail=b""), "base64"),
        (mail(tail=b"---\n\n--- f\n+++ f\n@@ -1 +1 @@\n-a\n+b\n"), "line 7: `--- f`"),
        (mail(b"a\0b\n"), "NUL"),
        (mail(b"", b"Subject: a =?UTF-8?q?=00?="), "NUL"),
        (mail(b"", b"From: a\0 <a@b>"), "NUL"),
        (mail(tail=b"---\n" + DIFF.replace(b"100644", b"160000")), "submodule"),
    ],
)
def test_broken_mails(data: bytes, words: str) -> None:
    with pytest.raises(HexpatchError) as caught:
        parse_patch(data, "p.patch")
    assert caught.value.message.startswith("p.patch: ")
    assert words in caught.value.message


def test_a_mail_without_a_diff() -> None:
    (path,) = (FIELD / "13-empty/patches").glob("0002-*")
    patch = parse_patch(path.read_bytes(), "p")
    assert (patch.body, patch.diffs, patch.diff) == ("Keeps a decision on record.", (), b"")
    assert parse_patch(render_patch(patch), "p") == patch
