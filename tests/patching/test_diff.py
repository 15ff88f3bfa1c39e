"""Our diffs against real git: what git writes we read, what we write git applies."""

from __future__ import annotations

import os
import random
import subprocess
from pathlib import Path

import pytest

from pytest_autofix.errors import PatchDoesNotApply, PatchError, PatchOutOfScope
from pytest_autofix.patching.changes import FileChange, Tree
from pytest_autofix.patching.diff import (
    apply_patch,
    changed_lines,
    parse_patch,
    patch_bytes,
    quote_name,
    unified_diff,
)

Files = dict[str, bytes | tuple[str, bytes]]
"""path → content; ("link", target) or ("exec", content) for the other two kinds."""

BODY = b"".join(b"line %d\n" % number for number in range(1, 41))

CASES = [
    pytest.param({"a.py": b"x = 1\ny = 2\n"}, {"a.py": b"x = 1\ny = 3\n"}, id="one-line"),
    pytest.param(
        {"a.py": BODY}, {"a.py": BODY.replace(b"line 3\n", b"").replace(b"35", b"x")}, id="two-hunks"
    ),
    pytest.param(
        {"a.py": BODY},
        {"a.py": BODY.replace(b"line 10\n", b"n\n").replace(b"line 17\n", b"m\n")},
        id="hunks-that-touch",
    ),
    pytest.param({"a.py": b"x\n"}, {"a.py": b"x\n", "pkg/new.py": b"y = 1\n"}, id="new-file"),
    pytest.param({"a.py": b"x\n"}, {"a.py": b"x\n", "empty.py": b""}, id="new-empty-file"),
    pytest.param({"a.py": b"x\n", "b.py": b"1\n2\n"}, {"a.py": b"x\n"}, id="deleted"),
    pytest.param({"a.py": b"x\n", "b.py": b""}, {"a.py": b"x\n"}, id="deleted-empty"),
    pytest.param({"a.py": b"x\ny"}, {"a.py": b"x\nz"}, id="no-newline-both"),
    pytest.param({"a.py": b"x\ny\n"}, {"a.py": b"x\ny"}, id="newline-taken"),
    pytest.param({"a.py": b"x\ny"}, {"a.py": b"x\ny\n"}, id="newline-added"),
    pytest.param({"a.py": b"x"}, {"a.py": b""}, id="emptied"),
    pytest.param({"a.py": b""}, {"a.py": b"x\n"}, id="filled"),
    pytest.param({"a.py": b"x\r\ny\r\n"}, {"a.py": b"x\r\nz\r\n"}, id="crlf"),
    pytest.param({"a.py": b"x\r\ny\n"}, {"a.py": b"x\ny\r\n"}, id="mixed-line-ends"),
    pytest.param({"a.py": b"s = '\xe9\xff'\n"}, {"a.py": b"s = '\xe8\xff'\n"}, id="latin-1"),
    pytest.param(
        {"a.py": b"x\x0cy\x0b\xe2\x80\xa8z\n"},
        {"a.py": b"x\x0cy\x0b\xe2\x80\xa8zz\n"},
        id="odd-line-separators",
    ),
    pytest.param({"with blank.py": b"1\n"}, {"with blank.py": b"2\n"}, id="name-with-blank"),
    pytest.param({"a b/c d": b"1\n"}, {"a b/c d": b"1\n", "a b/e b/f": b"n\n"}, id="new-name-with-blanks"),
    pytest.param({"é/ü.py": b"1\n"}, {"é/ü.py": b"2\n"}, id="name-not-ascii"),
    pytest.param({'q"\tname.py': b"1\n"}, {'q"\tname.py': b"2\n"}, id="name-quoted"),
    pytest.param({"back\\slash.py": b"1\n"}, {"back\\slash.py": b"2\n"}, id="name-backslash"),
    pytest.param({"b/x.py": b"1\n"}, {"b/x.py": b"2\n", "a/y.py": b"1\n"}, id="folders-named-like-prefixes"),
    pytest.param({"x.sh": b"1\n"}, {"x.sh": ("exec", b"1\n")}, id="mode-only"),
    pytest.param({"x.sh": ("exec", b"1\n")}, {"x.sh": ("exec", b"2\n")}, id="executable-changed"),
    pytest.param({"x.sh": ("exec", b"1\n2\n3\n")}, {"x.sh": b"1\n2\n4\n"}, id="mode-and-content"),
    pytest.param({"a": b"1\n"}, {"a": b"1\n", "l": ("link", b"a")}, id="new-link"),
    pytest.param({"l": ("link", b"a")}, {"l": ("link", b"b/c")}, id="changed-link"),
    pytest.param({"l": ("link", b"a"), "x": b"1\n"}, {"x": b"1\n"}, id="deleted-link"),
    pytest.param({"a.py": b"1\n2\n3\n"}, {"a.py": ("link", b"other.py")}, id="file-becomes-link"),
    pytest.param({"a.py": ("link", b"other.py")}, {"a.py": b"1\n2\n"}, id="link-becomes-file"),
    pytest.param({"-- x.py": b"1\n"}, {"-- x.py": b"2\n"}, id="name-like-a-label"),
    pytest.param({"a.py": b"- x\n-- y\n"}, {"a.py": b"-- z\n++ y\n"}, id="lines-like-labels"),
    pytest.param(
        {"a.py": b"1\n", "b.py": b"1\n", "c.py": b"1\n"},
        {"a.py": b"2\n", "b.py": b"3\n", "d.py": b"4\n"},
        id="several-files",
    ),
]
ODD_NAMES = ("name-quoted", "name-backslash")


@pytest.mark.parametrize(("before", "after"), CASES)
def test_reads_what_git_writes(tmp_path: Path, before: Files, after: Files) -> None:
    patch = git_patch(tmp_path / "repo", before, after)
    if any(character in path for path in before for character in '\\"\t'):
        with pytest.raises(PatchOutOfScope):
            apply_to(tmp_path / "tree", before, patch)
        return
    assert result_of(apply_to(tmp_path / "tree", before, patch), before) == normal(after)


@pytest.mark.parametrize(("before", "after"), CASES)
def test_git_applies_what_we_write(tmp_path: Path, before: Files, after: Files) -> None:
    patch = unified_diff(changes_between(before, after))
    put(tmp_path, before)
    git(tmp_path, "init", "-q")
    git(tmp_path, "apply", "--whitespace=nowarn", "-", stdin=patch_bytes(patch))
    assert contents(tmp_path) == normal(after)


@pytest.mark.parametrize(("before", "after"), CASES)
def test_we_read_what_we_write(
    tmp_path: Path, before: Files, after: Files, request: pytest.FixtureRequest
) -> None:
    if request.node.callspec.id.endswith(ODD_NAMES):
        return  # refused by their names, see above
    changes = changes_between(before, after)
    assert apply_to(tmp_path, before, patch_bytes(unified_diff(changes))) == tuple(changes)


@pytest.mark.parametrize(("before", "after"), CASES)
def test_writes_the_text_that_git_writes(tmp_path: Path, before: Files, after: Files) -> None:
    git_text = git_patch(tmp_path, before, after, "--full-index", "--no-renames")
    assert patch_bytes(unified_diff(changes_between(before, after))) == git_text


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--no-prefix",),
        ("-U0",),
        ("-U1",),
        ("--src-prefix=i/", "--dst-prefix=w/"),
        ("--minimal", "--patience"),
    ],
)
def test_git_options(tmp_path: Path, options: tuple[str, ...]) -> None:
    before: Files = {"pkg/a.py": BODY, "gone.py": b"1\n2\n", "a/b/x.py": b"1\n"}
    after: Files = {
        "pkg/a.py": BODY.replace(b"line 7\n", b"line 7\nnew\n").replace(b"line 30\nline 31\n", b""),
        "b/new file.py": b"n\n",
        "a/b/x.py": b"2\n",
    }
    patch = git_patch(tmp_path / "repo", before, after, *options)
    assert result_of(apply_to(tmp_path / "tree", before, patch), before) == after


@pytest.mark.parametrize(
    ("before", "after", "origins"),
    [
        pytest.param({"old.py": BODY}, {"new.py": BODY}, {"new.py": "old.py"}, id="rename"),
        pytest.param(
            {"old.py": BODY},
            {"new.py": BODY.replace(b"line 9\n", b"x\n")},
            {"new.py": "old.py"},
            id="rename-and-change",
        ),
        pytest.param(
            {"old.py": BODY}, {"old.py": BODY + b"x\n", "copy.py": BODY}, {"copy.py": "old.py"}, id="copy"
        ),
        pytest.param({"é o.py": BODY}, {"ü n.py": BODY}, {"ü n.py": "é o.py"}, id="rename-quoted"),
        pytest.param({"x.py": BODY}, {"y.py": ("exec", BODY)}, {"y.py": "x.py"}, id="rename-and-mode"),
    ],
)
def test_renames_and_copies(tmp_path: Path, before: Files, after: Files, origins: dict[str, str]) -> None:
    patch = git_patch(tmp_path / "repo", before, after, "-M", "-C", "-C", "--find-copies-harder")
    changes = apply_to(tmp_path / "tree", before, patch)
    assert result_of(changes, before) == normal(after)
    assert {change.path: change.renamed_from for change in changes if change.renamed_from} == origins


def test_two_files_change_places(tmp_path: Path) -> None:
    body = BODY * 4  # git breaks up no file below 400 bytes
    other = body.replace(b"line", b"row")
    before: Files = {"a.py": body, "b.py": other}
    after: Files = {"a.py": other, "b.py": body}
    patch = git_patch(tmp_path / "repo", before, after, "-B", "-M")
    assert patch.count(b"rename from") == 2
    assert result_of(apply_to(tmp_path / "tree", before, patch), before) == after


def test_random_edits_agree_with_git(tmp_path: Path) -> None:
    chance = random.Random(20)  # noqa: S311 - a seeded table of cases
    git(tmp_path, "init", "-q")
    for _ in range(40):
        # Few different lines, so that context is often ambiguous.
        old = [b"%d\n" % chance.randrange(6) for _ in range(chance.randrange(30))]
        new = list(old)
        for _ in range(chance.randrange(1, 6)):
            place = chance.randrange(len(new) + 1)
            new[place : place + chance.randrange(3)] = [b"%d\n" % chance.randrange(6)] * chance.randrange(3)
        before, after = b"".join(old), b"".join(new)
        if chance.random() < 0.3:
            after = after.removesuffix(b"\n")
        if before == after:
            continue
        change = FileChange("f.py", before, after)
        ours = patch_bytes(unified_diff([change]))
        (tmp_path / "f.py").write_bytes(before)
        git(tmp_path, "apply", "--whitespace=nowarn", "-", stdin=ours)
        assert (tmp_path / "f.py").read_bytes() == after
        assert apply_patch(parse_patch(ours), {"f.py": before}.get) == (change,)
        (tmp_path / "g.py").write_bytes(before)
        theirs = git(tmp_path, "diff", "--no-index", "--", "g.py", "f.py", status=1)
        theirs = theirs.replace(b"a/g.py", b"a/f.py")
        assert apply_patch(parse_patch(theirs), {"f.py": before}.get) == (change,)


def test_long_file_with_a_small_change_is_quick() -> None:
    body = b"".join(b"pass\n" if number % 3 else b"row %d\n" % number for number in range(60_000))
    after = body.replace(b"row 30000\n", b"row\n").replace(b"row 30300\n", b"")
    assert changed_lines(FileChange("a.py", body, after)) == 3


PLAIN = b"""\
--- {old}
+++ {new}
@@ -1,3 +1,3 @@
 1
-2
+two
 3
"""


@pytest.mark.parametrize(
    ("old", "new", "path"),
    [
        pytest.param("a/pkg/m.py", "b/pkg/m.py", "pkg/m.py", id="git-prefixes"),
        pytest.param("pkg/m.py", "pkg/m.py", "pkg/m.py", id="same-name"),
        pytest.param("m.py", "m.py", "m.py", id="no-folder"),
        pytest.param("old/pkg/m.py", "new/pkg/m.py", "pkg/m.py", id="two-folders"),
        pytest.param("m.py.orig", "m.py", "m.py", id="backup"),
        pytest.param("a/m.py~", "b/m.py", "m.py", id="backup-in-folders"),
        pytest.param(
            "m.py\t2024-01-02 03:04:05.000000000 +0000",
            "m.py\t2024-01-02 03:04:06.000000000 +0000",
            "m.py",
            id="dates",
        ),
        pytest.param('"a/m\\303\\251.py"', '"b/m\\303\\251.py"', "mé.py", id="quoted"),
    ],
)
def test_plain_diff_names(old: str, new: str, path: str) -> None:
    patch = PLAIN.replace(b"{old}", old.encode()).replace(b"{new}", new.encode())
    tree = {path: b"1\n2\n3\n"}
    assert apply_patch(parse_patch(patch), tree.get) == (FileChange(path, b"1\n2\n3\n", b"1\ntwo\n3\n"),)


def test_plain_recursive_diff_with_new_and_deleted_files(tmp_path: Path) -> None:
    before: Files = {"m.py": b"1\n", "gone.py": b"1\n2\n"}
    after: Files = {"m.py": b"2\n", "sub/new.py": b"n\n"}
    put(tmp_path / "old", before)
    put(tmp_path / "new", after)
    command = ["diff", "-ruN", "old", "new"]
    patch = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False).stdout
    assert result_of(apply_to(tmp_path / "tree", before, patch), before) == after


def test_mail_around_the_patch_is_skipped() -> None:
    head = b"From 1234 Mon Sep 17 00:00:00 2001\nSubject: [PATCH] x\n\n- a list\n+ of points\n---\n m.py | 2 +-\n\n"
    patch = head + PLAIN.replace(b"{old}", b"a/m.py").replace(b"{new}", b"b/m.py") + b"-- \n2.39.5\n\n"
    assert len(parse_patch(patch)) == 1


def test_patch_with_windows_line_ends_in_its_headers_only_fits_such_a_file() -> None:
    patch = PLAIN.replace(b"{old}", b"a/m.py").replace(b"{new}", b"b/m.py").replace(b"\n", b"\r\n")
    assert apply_patch(parse_patch(patch), {"m.py": b"1\r\n2\r\n3\r\n"}.get)[0].after == b"1\r\ntwo\r\n3\r\n"
    with pytest.raises(PatchDoesNotApply, match="another line end"):
        apply_patch(parse_patch(patch), {"m.py": b"1\n2\n3\n"}.get)


GIT = b"diff --git a/m.py b/m.py\nindex 1..2 100644\n--- a/m.py\n+++ b/m.py\n"


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        pytest.param(b"", "not a unified diff", id="empty"),
        pytest.param(b"hello\nworld\n", "not a unified diff", id="prose"),
        pytest.param(b"\x7fELF\x00\x01\n\xff", "not a unified diff", id="bytes"),
        pytest.param(b"@@ -1 +1 @@\n-a\n+b\n", "without a file name", id="no-names"),
        pytest.param(GIT + b"@@ -1,2 +1,2 @@\n a\n-b\n", "ends too early", id="cut-off"),
        pytest.param(GIT + b"@@ -1 +1 @@\n-a\n+b\n+c\n", "longer than its header", id="too-long"),
        pytest.param(
            GIT + b"@@ -1,3 +1,3 @@\n a\n-b\n+c\n@@ -9 +9 @@\n-x\n+y\n", "ends too early", id="too-short"
        ),
        pytest.param(GIT + b"@@ -1 +1 @@\n a\n", "changes nothing", id="nothing"),
        pytest.param(GIT + b"@@ -1,1 +1,1 @@\n-a\n*b\n", "not a line of a hunk", id="bad-sign"),
        pytest.param(
            b"diff --git a/x b/x\nindex 1..2\nGIT binary patch\nliteral 3\nKc\n", "binary", id="git-binary"
        ),
        pytest.param(b"diff --git a/x b/x\nBinary files a/x and b/x differ\n", "binary", id="binary-note"),
        pytest.param(b"Binary files old/x and new/x differ\n", "binary", id="plain-binary-note"),
        pytest.param(b"diff --cc x\n", "combined", id="merge"),
        pytest.param(b"*** a/x\n--- b/x\n***************\n", "context diff", id="context-diff"),
        pytest.param(b"diff --git a/x b/x\nnew file mode 160000\n", "submodule", id="submodule"),
        pytest.param(b"diff --git a/x b/x\nnew file mode 999\n", "no file mode", id="mode"),
        pytest.param(b"diff --git a/x b/x\n", "neither hunks", id="header-only"),
        pytest.param(b"--- a/x\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n", "two different files", id="two-names"),
        pytest.param(b"--- /dev/null\n+++ /dev/null\n@@ -1 +1 @@\n-a\n+b\n", "both names", id="no-name"),
        pytest.param(
            b"diff --git a/x b/x\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n", "names", id="names-disagree"
        ),
        pytest.param(
            b"diff --git a/x b/x\nnew file mode 100644\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n",
            "say otherwise",
            id="kinds-disagree",
        ),
        pytest.param(b"diff --git a/x y b/z\nnew file mode 100644\n", "told apart", id="names-unclear"),
    ],
)
def test_not_a_patch(patch: bytes, message: str) -> None:
    with pytest.raises(PatchError, match=message):
        parse_patch(patch)


@pytest.mark.parametrize(
    ("tree", "patch", "message"),
    [
        pytest.param(
            {"m.py": b"1\n2\n"},
            GIT + b"@@ -1,2 +1,2 @@\n 1\n-3\n+4\n",
            "line 2 is '2.n', the patch expects '3",
            id="other-content",
        ),
        pytest.param({}, GIT + b"@@ -1,2 +1,2 @@\n 1\n-3\n+4\n", "no such file", id="no-file"),
        pytest.param({"m.py": b""}, GIT + b"@@ -1 +1 @@\n-3\n+4\n", "the file is empty", id="empty-file"),
        pytest.param(
            {"m.py": b"x\na\nb\nc\nx\na\nb\nc\nq\n"},
            GIT + b"@@ -12,3 +12,3 @@\n a\n-b\n+n\n c\n",
            "fits in 2 places",
            id="ambiguous",
        ),
        pytest.param(
            {"m.py": b"1\n2\n3\nmore\n"},
            GIT + b"@@ -2,2 +2,3 @@\n 2\n 3\n+4\n",
            "begins or ends",
            id="file-goes-on",
        ),
        pytest.param(
            {"m.py": b"0\n1\n2\n"},
            GIT + b"@@ -1,2 +1,3 @@\n+0\n 1\n 2\n",
            "line 1 is",
            id="file-begins-earlier",
        ),
        pytest.param(
            {"m.py": b"1\n"},
            GIT + b"@@ -1 +1 @@\n-1\n\\ No newline at end of file\n+2\n",
            "line end",
            id="newline-at-end",
        ),
        pytest.param(
            {"m.py": b"1\n2\n"}, GIT + b"@@ -1 +0,0 @@\n-2\n", "does not fit", id="bare-lines-do-not-wander"
        ),
        pytest.param(
            {"m.py": b"1\n"}, b"--- /dev/null\n+++ b/m.py\n@@ -0,0 +1 @@\n+1\n", "it exists", id="exists"
        ),
        pytest.param(
            {"m.py": b"1\n2\n"},
            b"--- a/m.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-1\n",
            "holds more",
            id="deletes-too-little",
        ),
        pytest.param(
            {"m.py": b"1\n"},
            b"diff --git a/m.py b/m.py\nindex 1..2 120000\n--- a/m.py\n+++ b/m.py\n@@ -1 +1 @@\n-1\n+2\n",
            "a file in the tree",
            id="no-link",
        ),
        pytest.param(
            {"m.py": b"".join(b"%d\n" % n for n in range(400))},
            GIT + b"@@ -1,3 +1,3 @@\n 300\n-301\n+x\n 302\n",
            "does not fit",
            id="too-far",
        ),
    ],
)
def test_does_not_apply(tree: dict[str, bytes], patch: bytes, message: str) -> None:
    modes = dict.fromkeys(tree, "100644")
    with pytest.raises(PatchDoesNotApply, match=message):
        apply_patch(parse_patch(patch), tree.get, mode_of=modes.get)  # type: ignore[arg-type]  # str for Mode


def test_hunk_that_moved_is_found_where_it_fits_once() -> None:
    lines = [b"%d\n" % number for number in range(100)]
    patch = GIT + b"@@ -41,3 +41,3 @@\n 50\n-51\n+x\n 52\n@@ -61,3 +61,2 @@\n 70\n-71\n 72\n"
    after = apply_patch(parse_patch(patch), {"m.py": b"".join(lines)}.get)[0].after
    assert after == b"".join([*lines[:51], b"x\n", *lines[52:71], *lines[72:]])


@pytest.mark.parametrize(
    "name",
    [
        "/etc/passwd",
        "../out.py",
        "a/../../x",
        "c:/x.py",
        "a\\\\b.py",
        "x/./y",
        "x//y",
        "~/x",
        "n\\0l",
        "x\\342\\200\\256y",
    ],
)
def test_names_that_leave_the_tree_are_never_read(name: str) -> None:
    patch = f'--- "{name}"\n+++ "{name}"\n@@ -1 +1 @@\n-a\n+b\n'.encode()

    def read(path: str) -> bytes | None:
        raise AssertionError(path)

    with pytest.raises(PatchOutOfScope):
        apply_patch(parse_patch(patch), read)


def test_tree_does_not_follow_links(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "x.py").write_text("1\n")
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "pkg").symlink_to("../outside")
    with pytest.raises(PatchOutOfScope, match="pkg is a symbolic link"):
        Tree(tmp_path / "tree").read("pkg/x.py")
    assert Tree(tmp_path / "tree").read("pkg") == b"../outside"


@pytest.mark.parametrize(
    ("name", "quoted"),
    [("a/b.py", "a/b.py"), ("a b", "a b"), ("é", '"\\303\\251"'), ('"', '"\\""'), ("a\n\x01", '"a\\n\\001"')],
)
def test_quote_name(name: str, quoted: str) -> None:
    assert quote_name(name) == quoted


def normal(files: Files) -> Files:
    return dict(sorted(files.items()))


def split(entry: bytes | tuple[str, bytes]) -> tuple[str, bytes]:
    if isinstance(entry, bytes):
        return "100644", entry
    return ("120000" if entry[0] == "link" else "100755"), entry[1]


def changes_between(before: Files, after: Files) -> list[FileChange]:
    changes = []
    for path in sorted({**before, **after}):
        old_mode, old = split(before[path]) if path in before else ("", None)
        new_mode, new = split(after[path]) if path in after else (old_mode, None)
        if (old_mode, old) != (new_mode, new):
            changes.append(FileChange(path, old, new, old_mode or "100644", new_mode))  # type: ignore[arg-type]  # str for Mode
    return changes


def put(root: Path, files: Files) -> None:
    root.mkdir(exist_ok=True)
    for path, entry in files.items():
        mode, content = split(entry)
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.unlink(missing_ok=True)
        if mode == "120000":
            place.symlink_to(os.fsdecode(content))
        else:
            place.write_bytes(content)
            place.chmod(int(mode[-3:], 8))


def contents(root: Path) -> Files:
    found: Files = {}
    for place in sorted(root.rglob("*")):
        path = place.relative_to(root).as_posix()
        if path.startswith(".git"):
            continue
        if place.is_symlink():
            found[path] = ("link", os.fsencode(place.readlink()))
        elif place.is_file():
            executable = place.stat().st_mode & 0o100
            found[path] = ("exec", place.read_bytes()) if executable else place.read_bytes()
    return dict(sorted(found.items()))


def apply_to(root: Path, before: Files, patch: bytes) -> tuple[FileChange, ...]:
    put(root, before)
    tree = Tree(root)
    return apply_patch(parse_patch(patch), tree.read, mode_of=tree.mode)


def result_of(changes: tuple[FileChange, ...], before: Files) -> Files:
    files = dict(before)
    for change in changes:
        files.pop(change.path, None)
        if change.after is not None:
            words = {"100644": "", "100755": "exec", "120000": "link"}
            word = words[change.mode_after]
            files[change.path] = (word, change.after) if word else change.after
    return normal(files)


def git(root: Path, *arguments: str, stdin: bytes = b"", status: int = 0) -> bytes:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(root),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CEILING_DIRECTORIES": str(root.parent),
    }
    done = subprocess.run(
        ["git", *arguments], cwd=root, env=environment, input=stdin, capture_output=True, check=False
    )
    assert done.returncode == status, done.stderr.decode()
    return done.stdout


def git_patch(root: Path, before: Files, after: Files, *options: str) -> bytes:
    put(root, before)
    git(root, "init", "-q")
    git(root, "add", "-A")
    tree = git(root, "write-tree").decode().strip()
    for path in before:
        (root / path).unlink()
    put(root, after)
    git(root, "add", "-A")
    return git(root, "diff", "--cached", *options, tree)


def test_damaged_patches_raise_nothing_but_patch_errors(tmp_path: Path) -> None:
    """A stranger's bytes: whatever is done to a patch, the answer is changes or one of our errors, and soon."""
    before: Files = {
        "a b.py": BODY,
        "é.py": b"1\n2",
        "x.sh": ("exec", b"1\n"),
        "l": ("link", b"a"),
        "gone": b"1\n",
    }
    after: Files = {
        "a b.py": BODY[9:],
        "é.py": b"1\n2\n",
        "x.sh": b"1\n2\n",
        "l": ("link", b"b"),
        "new": b"n",
    }
    patch = git_patch(tmp_path, before, after)
    read = {path: split(entry)[1] for path, entry in before.items()}.get
    chance = random.Random(7)  # noqa: S311 - a seeded table of cases
    refused = 0
    for _ in range(1500):
        lines = patch.split(b"\n")
        for _ in range(chance.randrange(1, 4)):
            place = chance.randrange(len(lines))
            line = bytearray(lines[place])
            match chance.randrange(5):
                case 0:
                    del lines[place]
                case 1:
                    lines.insert(place, lines[chance.randrange(len(lines))])
                case 2 if line:
                    line[chance.randrange(len(line))] = chance.randrange(256)
                    lines[place] = bytes(line)
                case 3:
                    lines[place] = bytes(line[: chance.randrange(len(line) + 1)])
                case _:
                    lines = lines[: max(place, 1)]
        try:
            changes = apply_patch(parse_patch(b"\n".join(lines)), read)
        except PatchError:
            refused += 1
            continue
        assert all(change.before == read(change.path) for change in changes)
    assert 500 < refused < 1500
