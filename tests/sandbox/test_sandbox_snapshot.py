"""What is copied for the sandbox, and what is not."""

from __future__ import annotations

import hashlib
import os
import socket
import sys
from pathlib import Path

import pytest

from pytest_autofix.errors import ConfigurationError
from pytest_autofix.sandbox.snapshot import take_snapshot


def write(root: Path, **files: str) -> None:
    for name, text in files.items():
        path = root / name.replace("__slash__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.mark.parametrize(
    ("name", "copied"),
    [
        pytest.param("pkg/mod.py", True, id="source"),
        pytest.param("pkg/_speed.cpython-311-x86_64-linux-gnu.so", True, id="extension"),
        pytest.param("pkg/_version.py", True, id="generated-version"),
        pytest.param("pkg.egg-info/PKG-INFO", True, id="egg-info"),
        pytest.param("environment/readme.txt", True, id="folder-that-sounds-like-a-venv"),
        pytest.param(".coveragerc", True, id="dot-file"),
        pytest.param("tests/data/x.bin", True, id="data"),
        pytest.param(".git/config", False, id="history"),
        pytest.param("pkg/__pycache__/mod.cpython-311.pyc", False, id="byte-code-cache"),
        pytest.param("pkg/mod.pyc", False, id="byte-code"),
        pytest.param("node_modules/x/index.js", False, id="node-modules"),
        pytest.param(".env", False, id="environment-file"),
        pytest.param("deploy/.env.production", False, id="environment-file-with-suffix"),
        pytest.param("deploy/server.pem", False, id="certificate"),
        pytest.param("deploy/id_rsa.backup", False, id="private-key"),
        pytest.param(".netrc", False, id="netrc"),
        pytest.param(".pytest_autofix/runs.db", False, id="our-own-folder"),
    ],
)
def test_names(root: Path, tmp_path: Path, name: str, copied: bool) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"content")
    snapshot = take_snapshot(root, tmp_path / "copy")
    assert (tmp_path / "copy" / name).exists() is copied
    assert (name in snapshot.hashes) is copied


def test_content_mode_and_time(root: Path, tmp_path: Path) -> None:
    path = root / "bin" / "run"
    path.parent.mkdir()
    path.write_bytes(bytes(range(256)) * 10_000)
    path.chmod(0o4750)
    os.utime(path, ns=(1, 1_234_567_890_123_456_789))
    os.utime(path.parent, ns=(1, 987_654_321))
    snapshot = take_snapshot(root, tmp_path / "copy")
    copy = tmp_path / "copy" / "bin" / "run"
    assert copy.read_bytes() == path.read_bytes()
    assert copy.stat().st_mode & 0o7777 == 0o750
    assert copy.stat().st_mtime_ns == 1_234_567_890_123_456_789
    assert copy.parent.stat().st_mtime_ns == 987_654_321
    assert snapshot.hashes == {"bin/run": hashlib.sha256(path.read_bytes()).hexdigest()}
    assert snapshot.size == 2_560_000
    assert (tmp_path / "copy").stat().st_mode & 0o077 == 0


def test_virtual_environment_becomes_an_empty_folder(root: Path, tmp_path: Path) -> None:
    write(root, **{"venv/pyvenv.cfg": "home = /usr/bin\n", "venv/bin/python": "", "a.py": ""})
    snapshot = take_snapshot(root, tmp_path / "copy")
    assert snapshot.environments == (root / "venv",)
    assert list((tmp_path / "copy" / "venv").iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="links")
def test_links(root: Path, tmp_path: Path) -> None:
    write(root, **{"real/a.py": "x = 1\n"})
    (tmp_path / "outside").write_text("secret")
    (root / "inside").symlink_to("real")
    (root / "absolute").symlink_to(root / "real" / "a.py")
    (root / "real" / "up").symlink_to("../inside/a.py")
    (root / "out").symlink_to(tmp_path / "outside")
    (root / "out-relative").symlink_to("../outside")
    (root / "dangling").symlink_to("nothing-here")
    (root / "loop").symlink_to("loop")
    snapshot = take_snapshot(root, tmp_path / "copy")
    copy = tmp_path / "copy"
    assert {path.name for path in copy.iterdir() if path.is_symlink()} == {
        "inside",
        "absolute",
        "dangling",
        "loop",
    }
    assert (copy / "inside").readlink() == Path("real")
    assert (copy / "real" / "up").is_symlink()
    assert dict(snapshot.left_out) == {
        "out": f"a link out of the project, to {tmp_path / 'outside'}",
        "out-relative": "a link out of the project, to ../outside",
    }


@pytest.mark.skipif(sys.platform == "win32", reason="special files")
def test_special_files_are_listed(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(root / "pipe")
    monkeypatch.chdir(root)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        snapshot = take_snapshot(root, tmp_path / "copy")
    assert snapshot.left_out == (("pipe", "a special file"), ("socket", "a special file"))


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="root reads everything")
def test_unreadable_files_are_listed(root: Path, tmp_path: Path) -> None:
    write(root, **{"a.py": "", "b.py": ""})
    (root / "a.py").chmod(0)
    snapshot = take_snapshot(root, tmp_path / "copy")
    assert snapshot.left_out == (("a.py", "Permission denied"),)
    assert "b.py" in snapshot.hashes


def test_too_large_names_the_folders(root: Path, tmp_path: Path) -> None:
    for name, size in (("data/raw/a", 3 << 20), ("data/raw/b", 3 << 20), ("pkg/c", 1 << 20)):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes(size))
    with pytest.raises(
        ConfigurationError, match=r"7 MiB, more than the 5 MiB.*data/raw \(6 MiB\), pkg \(1 MiB\)"
    ):
        take_snapshot(root, tmp_path / "copy", max_bytes=5 << 20)
    assert not (tmp_path / "copy").exists()


def test_destination_inside_the_project(root: Path) -> None:
    write(root, **{"a.py": "x"})
    snapshot = take_snapshot(root, root / "copy")
    assert set(snapshot.hashes) == {"a.py"}
    assert sorted(path.name for path in (root / "copy").iterdir()) == ["a.py"]
