"""All files or none, only if nobody touched them, with their modes."""

from __future__ import annotations

import errno
import importlib.util
import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from pytest_autofix.errors import PatchDoesNotApply, PatchOutOfScope
from pytest_autofix.patching import write
from pytest_autofix.patching.changes import FileChange
from pytest_autofix.patching.write import FilesNotWritten, WrittenFile, sha256_of, write_files

CHANGES = (
    FileChange("a.py", b"a = 1\n", b"a = 2\n"),
    FileChange("pkg/b.py", b"b = 1\r\n", b"b = 2\r\n", "100755", "100755"),
    FileChange("pkg/new/c.py", None, b"c = 1\n"),
    FileChange("gone.py", b"d = 1\n", None),
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    (root / "pkg").mkdir(parents=True)
    for change in CHANGES:
        if change.before is not None:
            (root / change.path).write_bytes(change.before)
    (root / "pkg/b.py").chmod(0o751)
    return root


def tree(root: Path) -> dict[str, bytes]:
    return {
        place.relative_to(root).as_posix(): place.read_bytes() if place.is_file() else b"a folder"
        for place in root.rglob("*")
    }


def test_writes_all(root: Path) -> None:
    written = write_files(root, CHANGES)
    files = {change.path: change.after for change in CHANGES if change.after is not None}
    assert tree(root) == {**files, "pkg": b"a folder", "pkg/new": b"a folder"}
    assert stat.S_IMODE((root / "pkg/b.py").stat().st_mode) == 0o751
    assert written[0] == WrittenFile("a.py", sha256_of(b"a = 1\n"), sha256_of(b"a = 2\n"))
    assert (written[2].sha256_before, written[3].sha256_after) == (None, None)


@pytest.mark.parametrize(
    ("path", "content"),
    [
        pytest.param("pkg/b.py", b"b = 1\n", id="other-content"),
        pytest.param("gone.py", None, id="gone"),
        pytest.param("pkg/new/c.py", b"", id="appeared"),
    ],
)
def test_a_file_that_changed_since_stops_everything(root: Path, path: str, content: bytes | None) -> None:
    if content is None:
        (root / path).unlink()
    else:
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).write_bytes(content)
    before = tree(root)
    with pytest.raises(PatchDoesNotApply, match=f"nothing was written: {path} changed since"):
        write_files(root, CHANGES)
    assert tree(root) == before


def test_hashes_of_the_beginning_decide(root: Path) -> None:
    with pytest.raises(PatchDoesNotApply, match=r"a\.py"):
        write_files(root, CHANGES[:1], expected_sha256={"a.py": sha256_of(b"something else")})
    write_files(root, CHANGES[:1], expected_sha256={"a.py": sha256_of(b"a = 1\n")})


def test_links_are_never_written_nor_written_through(root: Path, tmp_path: Path) -> None:
    (tmp_path / "outside.py").write_bytes(b"a = 1\n")
    (root / "a.py").unlink()
    (root / "a.py").symlink_to("../outside.py")
    with pytest.raises(PatchDoesNotApply):
        write_files(root, CHANGES[:1])
    (root / "linked").symlink_to("pkg")
    with pytest.raises(PatchOutOfScope):
        write_files(root, [FileChange("linked/b.py", b"b = 1\r\n", b"x")])
    with pytest.raises(PatchOutOfScope):
        write_files(root, [FileChange("l", None, b"a.py", "100644", "120000")])
    assert (tmp_path / "outside.py").read_bytes() == b"a = 1\n"


@pytest.mark.parametrize("failing", range(3))
@pytest.mark.parametrize(
    ("error", "message"),
    [
        pytest.param(OSError(errno.ENOSPC, "x"), "the disk is full", id="full"),
        pytest.param(OSError(errno.EROFS, "x"), "read-only", id="read-only"),
        pytest.param(OSError(errno.EIO, "Input/output error"), "Input/output error", id="broken"),
    ],
)
def test_a_failure_in_the_middle_takes_everything_back(
    root: Path, monkeypatch: pytest.MonkeyPatch, failing: int, error: OSError, message: str
) -> None:
    before, times = tree(root), (root / "a.py").stat().st_mtime_ns
    real, calls = os.replace, iter(range(9))

    def replace(source: Path, target: Path) -> None:
        if next(calls) == failing:
            raise error
        real(source, target)

    monkeypatch.setattr(write.os, "replace", replace)
    with pytest.raises(FilesNotWritten, match=f"nothing was written: .*{message}"):
        write_files(root, CHANGES)
    assert tree(root) == before
    assert (root / "a.py").stat().st_mtime_ns == times


def test_interrupt_in_the_middle_takes_everything_back(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = tree(root)

    def interrupted(steps: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(write, "_sync_folders", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_files(root, CHANGES)
    assert tree(root) == before


def test_full_disk(root: Path) -> None:
    """A real limit instead of a full disk: no file of this process may be larger than a few bytes."""
    code = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "from pathlib import Path; from pytest_autofix.patching.changes import FileChange\n"
        "from pytest_autofix.patching.write import FilesNotWritten, write_files\n"
        "changes = [FileChange('a.py', b'a = 1\\n', b'a = 2\\n'), FileChange('gone.py', b'd = 1\\n', b'd' * 5000)]\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "try: write_files(Path(sys.argv[1]), changes)\n"
        "except FilesNotWritten as error: sys.exit(7)\n"
    )
    before = tree(root)
    done = subprocess.run(
        [sys.executable, "-B", "-c", code, root], check=False, cwd=Path(__file__).parents[2]
    )
    assert done.returncode == 7
    assert tree(root) == before


def test_read_only_folder() -> None:
    # Root may write everywhere, so another user has to try; pytest's own temporary folder is closed to others.
    drop = "import os; os.setgid(65534); os.setuid(65534)\n" if os.geteuid() == 0 else ""
    code = (
        f"import sys\nfrom pathlib import Path\nfrom pytest_autofix.patching.changes import FileChange\n"
        f"from pytest_autofix.patching.write import FilesNotWritten, write_files\n{drop}"
        "try: write_files(Path(sys.argv[1]), [FileChange('a.py', b'a = 1\\n', b'a = 2\\n')])\n"
        "except FilesNotWritten as error: print(error); sys.exit(7)\n"
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "a.py").write_bytes(b"a = 1\n")
        folder.chmod(0o555)
        done = subprocess.run(
            [sys.executable, "-B", "-c", code, folder],
            check=False,
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
        )
        folder.chmod(0o755)
        assert tree(folder) == {"a.py": b"a = 1\n"}
    assert done.returncode == 7, done.stderr
    assert done.stdout.startswith("nothing was written: no permission to write")
    assert len(done.stdout.splitlines()) == 1


def test_python_sees_the_new_source_even_within_the_same_second(root: Path) -> None:
    place = root / "m.py"
    place.write_bytes(b"x = 1 - 1\n")
    assert value_of(place) == 0
    write_files(root, [FileChange("m.py", b"x = 1 - 1\n", b"x = 1 + 1\n")])
    assert value_of(place) == 2


def value_of(place: Path) -> object:
    spec = importlib.util.spec_from_file_location("m", place)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.x
