"""Import names of the project's own files."""

from __future__ import annotations

import pytest

from pytest_autofix.candidates.search.imports import module_name


@pytest.mark.parametrize(
    ("path", "files", "name"),
    [
        pytest.param("pkg/mod.py", {"pkg/__init__.py"}, "pkg.mod", id="flat"),
        pytest.param("src/pkg/mod.py", {"src/pkg/__init__.py"}, "pkg.mod", id="src-layout"),
        pytest.param("lib/mod.py", {"lib/__init__.py"}, "lib.mod", id="a-package-named-lib"),
        pytest.param("pkg/__init__.py", {"pkg/__init__.py"}, "pkg", id="package"),
        pytest.param("src.py", set(), "src", id="a-module-named-src"),
    ],
)
def test_module_name(path: str, files: set[str], name: str) -> None:
    assert module_name(path, files) == name
