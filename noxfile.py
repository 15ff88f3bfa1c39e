"""The same checks here and in continuous integration: `python -m nox` runs tests, types and lint.

Every session makes its own environment and installs what it needs.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import nox

nox.needs_version = ">=2025.5"
nox.options.default_venv_backend = "virtualenv"
nox.options.sessions = ["lint", "types", "tests"]

PYTHONS = ["3.11", "3.12", "3.13", "3.14"]
PROJECT = tomllib.loads(Path(__file__).with_name("pyproject.toml").read_text(encoding="utf-8"))["project"]


def install(session: nox.Session, *groups: str, requirements: tuple[str, ...] = ()) -> None:
    """The package with its solver in this session, and dependency groups of pyproject.toml."""
    session.install("--upgrade", "pip>=25.1")  # the first that knows --group
    arguments = [argument for group in groups for argument in ("--group", group)]
    session.install("-e", ".[solve]", *requirements, *arguments)


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """The whole test suite; arguments after `--` go to pytest."""
    install(session, "test")
    session.run("python", "-m", "pytest", *session.posargs)


@nox.session(python="3.11")
def minimums(session: nox.Session) -> None:
    """The test suite with the oldest version that each direct dependency allows."""
    solve = PROJECT["optional-dependencies"]["solve"]
    install(session, "test", requirements=tuple(map(oldest, [*PROJECT["dependencies"], *solve])))
    session.run("python", "-m", "pytest", *session.posargs)


def oldest(requirement: str) -> str:
    """`name>=1.2,<3; marker` → `name==1.2; marker`."""
    specifier, separator, marker = requirement.partition(";")
    found = re.fullmatch(r"([A-Za-z0-9._\[\],-]+?)>=([0-9.]+)(,.*)?", specifier.strip())
    if not found:
        raise ValueError(f"{requirement!r} names no lowest version")
    return f"{found[1]}=={found[2]}{separator}{marker}"


@nox.session(python="3.11")
def types(session: nox.Session) -> None:
    """mypy --strict over what pyproject.toml lists."""
    install(session, "types")
    session.run("python", "-m", "mypy")


@nox.session(python="3.11")
def lint(session: nox.Session) -> None:
    """ruff: rules and layout."""
    session.install("--upgrade", "pip>=25.1")
    session.install("--group", "lint")
    session.run("ruff", "check")
    session.run("ruff", "format", "--check")


@nox.session(python="3.11")
def build(session: nox.Session) -> None:
    """Source distribution and wheel, and a plain pytest run with the built wheel only."""
    session.install("build", "twine")
    output = Path(session.create_tmp(), "dist")
    for old in output.glob("*"):
        old.unlink()
    session.run("python", "-m", "build", "--outdir", str(output))
    built = sorted(map(str, output.glob("*")))
    session.run("python", "-m", "twine", "check", "--strict", *built)
    session.install("--force-reinstall", *(path for path in built if path.endswith(".whl")))
    session.chdir(output)  # away from the checkout, which would be imported instead
    session.run("python", "-c", "import pytest_autofix; print(pytest_autofix.__version__)")
    session.run("python", "-m", "pytest", "--help", silent=True)
