"""What of the machine a sandbox shows: enough to run the tests, never the home folder."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from pytest_autofix.errors import ConfigurationError
from pytest_autofix.sandbox.protocol import Workspace
from pytest_autofix.sandbox.workspace import build_workspace


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home" / "project").mkdir(parents=True)
    return tmp_path / "home"


def build(
    home: Path,
    *,
    python: str = sys.executable,
    sys_path: Sequence[str] = (),
    root: Path | None = None,
    **environ: str,
) -> Workspace:
    return build_workspace(
        root or home / "project",
        snapshot=home / "snapshot",
        python=Path(python),
        sys_path=sys_path,
        pass_env=("CHOSEN",),
        environ={"HOME": str(home), **environ},
    )


@pytest.mark.parametrize("name", ["/", "/usr", "/tmp", ".", ".."])
def test_roots_that_are_no_project(home: Path, name: str) -> None:
    with pytest.raises(ConfigurationError, match="is no project folder"):
        build(home, root=Path(name) if name.startswith("/") else Path(home, name).resolve())


def test_environment_is_an_allowlist(home: Path) -> None:
    environment = build(
        home, AWS_SECRET_ACCESS_KEY="x", SSH_AUTH_SOCK="/run/x", GITHUB_TOKEN="x", CHOSEN="yes", LC_ALL="de_DE.UTF-8",
        TZ="Asia/Tokyo", PYTHONPATH="/somewhere",
    ).environment  # fmt: skip
    assert environment["CHOSEN"] == "yes"
    assert environment["TZ"] == "Asia/Tokyo"
    assert environment["LC_ALL"] == "de_DE.UTF-8"
    assert environment["PYTHONPATH"] == "/somewhere"
    assert environment["PYTHONDONTWRITEBYTECODE"] == "1"
    assert environment["HOME"] != str(home)
    assert not {"AWS_SECRET_ACCESS_KEY", "SSH_AUTH_SOCK", "GITHUB_TOKEN"} & environment.keys()


def test_import_path_outside_the_project_is_shown(home: Path) -> None:
    source = home / "library" / "src"
    for name in (
        "tool/__init__.py",
        "space/part/__init__.py",
        "single.py",
        "tool-1.0.dist-info/METADATA",
        ".git/config",
        "notes.txt",
        "data/table.csv",
        "no-package/x.py",
    ):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).touch()
    (home / "project" / "src").mkdir()
    entries = [
        str(home / "library" / "src"),
        str(home / "project" / "src"),
        str(home),
        "/",
        "",
        str(home / "gone"),
    ]
    workspace = build(home, sys_path=entries)
    shown = {path.name for path in workspace.readable if path.is_relative_to(source)}
    assert shown == {"tool", "space", "single.py", "tool-1.0.dist-info"}  # not what else lies in a checkout
    assert workspace.sys_path == tuple(entries)
    for never in (home, Path("/"), home / "project", home / "project" / "src", home / "gone"):
        assert never not in workspace.readable


def test_targets_of_editable_installs_are_shown(home: Path) -> None:
    packages = home / "venv" / "lib" / "site-packages"
    packages.mkdir(parents=True)
    for name in ("sibling/src/sibling", "space/src/space"):
        (home / name).mkdir(parents=True)
    (home / "sibling/src/single.py").touch()
    mapping = {
        "sibling": str(home / "sibling/src/sibling"),
        "single": str(home / "sibling/src/single"),
        "own": str(home / "project/own"),
    }
    (packages / "__editable___sibling_1_0_finder.py").write_text(
        f"import sys\nMAPPING: dict[str, str] = {mapping!r}\n"
        f"NAMESPACES: dict[str, list[str]] = {{'space': [{str(home / 'space/src/space')!r}]}}\nPATH = 'x'\n"
    )
    (packages / "__editable___broken_finder.py").write_text("MAPPING: dict[str, str] = {")
    readable = build(home, sys_path=[str(packages)]).readable
    for path in ("sibling/src/sibling", "sibling/src/single.py", "space/src/space"):
        assert home / path in readable
    assert not any(path.is_relative_to(home / "project") for path in readable)


def test_links_of_an_interpreter_are_followed(home: Path) -> None:
    """As uv lays it out: a venv whose python is a link through a linked folder to the real one."""
    real = home / "share" / "python" / "cpython-3.12.7"
    (real / "bin").mkdir(parents=True)
    (real / "bin" / "python3.12").touch()
    (home / "share" / "python" / "cpython-3.12").symlink_to("cpython-3.12.7")
    venv = home / "project" / ".venv"
    (venv / "bin").mkdir(parents=True)
    (venv / "pyvenv.cfg").write_text(f"home = {home}/share/python/cpython-3.12/bin\n")
    (venv / "bin" / "python").symlink_to(f"{home}/share/python/cpython-3.12/bin/python3.12")
    workspace = build(home, python=str(venv / "bin" / "python"))
    assert set(workspace.readable) == {venv, real, home / "share" / "python" / "cpython-3.12"}
    assert workspace.python == venv / "bin" / "python"
    assert workspace.environment["VIRTUAL_ENV"] == str(venv)


def test_nothing_is_listed_twice(home: Path) -> None:
    (home / "library" / "src").mkdir(parents=True)
    (home / "library" / "src" / "single.py").touch()
    entries = [str(home / "library" / "src")] * 2
    readable = [path for path in build(home, sys_path=entries).readable if path.is_relative_to(home)]
    assert readable == [home / "library" / "src" / "single.py"]
