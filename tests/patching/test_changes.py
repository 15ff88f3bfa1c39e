"""From a candidate or a folder to bytes: encoding, byte order mark and line ends of the file stay."""

from __future__ import annotations

import codecs
from pathlib import Path

import pytest

from pytest_autofix.candidates.candidate import Candidate, Edit, Origin
from pytest_autofix.errors import PatchDoesNotApply, PatchError
from pytest_autofix.patching.changes import FileChange, changes_from_directory, changes_of


def candidate(*edits: Edit) -> Candidate:
    return Candidate(edits, Origin("search", "test"))


@pytest.mark.parametrize(
    ("original", "start", "end", "text", "after"),
    [
        pytest.param(b"x = 1\n", 4, 5, "2", b"x = 2\n", id="plain"),
        pytest.param(codecs.BOM_UTF8 + b"x = 1\n", 4, 5, "2", codecs.BOM_UTF8 + b"x = 2\n", id="bom"),
        pytest.param(b"x = 1\r\ny\r\n", 4, 5, "2", b"x = 2\r\ny\r\n", id="crlf"),
        pytest.param(b"x = 1\r\ny\nz\r", 4, 5, "2", b"x = 2\r\ny\nz\r", id="mixed-line-ends"),
        pytest.param(b"# coding: latin-1\ns = '\xe9'\n", 23, 24, "è", b"# coding: latin-1\ns = '\xe8'\n", id="latin-1"),
        pytest.param("s = '日本'\n".encode(), 5, 6, "月", "s = '月本'\n".encode(), id="utf-8"),
        pytest.param(b"x = 1", 4, 5, "2", b"x = 2", id="no-line-end"),
        pytest.param(b"\tx = 1\x0c\n", 5, 6, "2", b"\tx = 2\x0c\n", id="tab-and-form-feed"),
    ],
)  # fmt: skip
def test_candidate_in_bytes(original: bytes, start: int, end: int, text: str, after: bytes) -> None:
    changes = changes_of(candidate(Edit("m.py", start, end, text)), {"m.py": original})
    assert changes == (FileChange("m.py", original, after),)


def test_candidate_keeps_the_executable_bit_and_leaves_equal_files_out() -> None:
    edits = candidate(Edit("a.py", 0, 1, "y"), Edit("b.py", 0, 1, "x"), Edit("new.py", 0, 0, "é\n"))
    changes = changes_of(edits, {"a.py": b"x\n", "b.py": b"x\n"}, modes={"a.py": "100755"})
    assert changes == (
        FileChange("a.py", b"x\n", b"y\n", "100755", "100755"),
        FileChange("new.py", None, "é\n".encode()),
    )


@pytest.mark.parametrize(
    ("edits", "message"),
    [
        pytest.param((Edit("m.py", 0, 4, ""), Edit("m.py", 2, 6, "")), "overlaps", id="overlap"),
        pytest.param((Edit("m.py", 90, 99, ""),), "lies outside", id="outside"),
        pytest.param((Edit("m.py", 18, 18, "→"),), "m.py: .*iso-8859-1", id="no-such-character"),
        pytest.param((Edit("new.py", 0, 0, "\udc80"),), "new.py: ", id="lone-surrogate"),
    ],
)
def test_candidate_that_does_not_fit(edits: tuple[Edit, ...], message: str) -> None:
    with pytest.raises(PatchDoesNotApply, match=message):
        changes_of(candidate(*edits), {"m.py": b"# coding: latin-1\nx = 1\n"})


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        pytest.param(FileChange("x", b"1", b"2"), "file", id="content"),
        pytest.param(FileChange("x", b"1", b"1", "100644", "100755"), "mode", id="mode"),
        pytest.param(FileChange("x", b"1", b"2", "100644", "100755"), "file", id="content-and-mode"),
        pytest.param(FileChange("x", None, b"2", "120000", "100644"), "file", id="new-file"),
        pytest.param(FileChange("x", None, b"2", "100644", "120000"), "symlink", id="new-link"),
        pytest.param(FileChange("x", b"2", None, "120000", "120000"), "symlink", id="removed-link"),
    ],
)
def test_kind(change: FileChange, kind: str) -> None:
    assert change.kind == kind


def test_directory_laid_over_the_tree(tmp_path: Path) -> None:
    root, overlay = tmp_path / "root", tmp_path / "overlay"
    for path, content in {"pkg/a.py": "1\n", "pkg/same.py": "s\n", "pkg/x.sh": "s\n", "link": None}.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        if content is None:
            place.symlink_to("pkg")
        else:
            place.write_text(content)
    for path in (
        "pkg/a.py",
        "pkg/same.py",
        "pkg/x.sh",
        "pkg/.hidden",
        "link/below.py",
        "pkg/__pycache__/a.pyc",
    ):
        place = overlay / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("s\n")
    (overlay / "pkg/x.sh").chmod(0o755)
    (overlay / "new").symlink_to("../outside")
    (overlay / "folder").symlink_to("pkg")
    changes = {change.path: change for change in changes_from_directory(overlay, root)}
    assert list(changes) == sorted(
        ["pkg/a.py", "pkg/x.sh", "pkg/.hidden", "link/below.py", "new", "folder", "pkg/__pycache__/a.pyc"]
    )
    assert changes["pkg/a.py"] == FileChange("pkg/a.py", b"1\n", b"s\n")
    assert changes["pkg/x.sh"].kind == "mode"
    assert changes["new"] == FileChange("new", None, b"../outside", "100644", "120000")
    assert changes["folder"].kind == "symlink"


def test_directory_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(PatchError, match="cannot be read"):
        changes_from_directory(tmp_path / "missing", tmp_path)
