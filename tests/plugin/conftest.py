"""A project for each test, or one for a module whose tests look at a single run from several sides."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from plugin_project import Project

# The loopback server is at home with the tests of the model client; pytest puts only this folder on the path.
sys.path.append(str(Path(__file__).parents[1] / "candidates" / "model"))


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project", tmp_path / "home")


@pytest.fixture(scope="module")
def shared_project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """One for all tests of a module: they look at one run from several sides."""
    folder = tmp_path_factory.mktemp("shared")
    return Project(folder / "project", folder / "home")
