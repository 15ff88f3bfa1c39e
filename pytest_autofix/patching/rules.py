"""The rules of what may be edited, by name: ids with their reasons, limits, and the names that are never source."""

from __future__ import annotations

from pytest_autofix.patching.listing import SKIPPED
from pytest_autofix.patching.names import fold_name

__all__ = [
    "FEW_FILES",
    "MAX_CHANGED_FILES",
    "MAX_CHANGED_LINES",
    "MAX_FILE_BYTES",
    "OUTPUT_FOLDERS",
    "RULES",
    "STEERING_HIDDEN",
    "WRITTEN_BY_RUNS",
    "forbidden_name",
    "is_conftest",
]

MAX_CHANGED_FILES = 6
MAX_CHANGED_LINES = 300
MAX_FILE_BYTES = 300_000  #: a file that is larger already may grow by a tenth of this

RULES = {
    "name": "the name is no plain path inside the project",
    "git": "git's own files are never touched",
    "link-parent": "the path leads through a symbolic link",
    "symlink": "symbolic links are neither made, changed nor followed",
    "deleted": "files are changed, never deleted or renamed",
    "mode": "the permissions of a file are not changed",
    "startup": "Python runs this file at every start",
    "conftest": "a conftest steers the tests",
    "configuration": "configuration decides what is run as a test",
    "lock-file": "lock files pin what is installed",
    "metadata": "the metadata of an installed package is not source",
    "environment": "environments, caches and installed packages are not the project's source",
    "hidden": "hidden files and folders are not source",
    "test-folder": "everything below a test folder belongs to the tests",
    "test-file": "it holds tests",
    "test-plugin": "the tests load it as a plugin",
    "test-base": "test classes inherit from it",
    "not-python": "only Python source is edited: other files may be what tests read",
    "same-name": "some file systems take the name for another one of the project",
    "shadows": "a new module of this name would hide another one",
    "new-file": "only files that exist are changed",
    "untracked": "git does not track the file; `git add` it to have it repaired",
    "not-importable": "the file lies in no package of the project",
    "encoding": "the file is no text in the encoding it declares, or it declares another one than before",
    "too-large": f"a file may have {MAX_FILE_BYTES // 1000} kB",
    "inline-tests": "doctests and tests inside a source file stay as they are",
    "twice": "a patch changes each file once",
    "too-many-files": f"a patch may change {MAX_CHANGED_FILES} files",
    "too-many-lines": f"a patch may change {MAX_CHANGED_LINES} lines",
}
"""Rule → its reason, in one line; in the order in which they are asked."""

CONFIGURATION = frozenset(
    (
        "pyproject.toml",
        "pytest.ini",
        ".pytest.ini",
        "pytest.toml",
        ".pytest.toml",
        "tox.ini",
        "tox.toml",
        "setup.cfg",
        "setup.py",
        "noxfile.py",
        ".coveragerc",
        "mypy.ini",
        "ruff.toml",
        "manifest.in",
        "dockerfile",
        "containerfile",
        "makefile",
        "justfile",
        "codeowners",
        "meson.build",
    )
)
LOCK_FILES = frozenset(("pipfile", "pylock.toml", "conda-lock.yml", "requirements.txt", "constraints.txt"))
STARTUP = frozenset(("sitecustomize", "usercustomize"))
METADATA = (".dist-info", ".egg-info", ".egg-link")
OUTPUT_FOLDERS = frozenset(("build", "dist", "htmlcov", "docs", "doc"))
"""Where git does not tell source from the rest: no packages of the project lie here."""

STEERING_HIDDEN = frozenset((".coveragerc", ".pytest.ini", ".pytest.toml"))
"""Hidden files at the root that steer a test run."""

WRITTEN_BY_RUNS = (".log", ".tmp", ".db", ".sqlite", ".sqlite3", ".pyc", ".pid", "coverage.xml", ".lcov")
"""Endings of what test runs leave in the tree of a project without git; they must be able to write it again."""

FEW_FILES = 30  #: up to here single files are protected, above it their folder


def is_conftest(path: str) -> bool:
    return fold_name(path).rpartition("/")[2].partition(".")[0] == "conftest"


def forbidden_name(path: str) -> str:
    """Id of the rule against the name of a file, whatever the options say; empty if there is none."""
    *folders, name = fold_name(path).split("/")
    stem = name.partition(".")[0]
    if stem in STARTUP or STARTUP.intersection(folders) or name.endswith(".pth") or "__editable__" in name:
        return "startup"
    if is_conftest(path) or "conftest" in folders:
        return "conftest"
    if name in CONFIGURATION:
        return "configuration"
    if name in LOCK_FILES or name.endswith(".lock"):
        return "lock-file"
    if any(part.endswith(METADATA) for part in (*folders, name)):
        return "metadata"
    if SKIPPED.intersection(folders):
        return "environment"
    return "hidden" if any(part.startswith(".") for part in (*folders, name)) else ""
