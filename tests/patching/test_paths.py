"""What may be edited: each rule with what breaks it and what does not."""

from __future__ import annotations

import os
import re
import subprocess
import unicodedata
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from pytest_autofix.patching.changes import FileChange, Tree
from pytest_autofix.patching.paths import RULES, Editable
from pytest_autofix.patching.rules import MAX_CHANGED_FILES, MAX_CHANGED_LINES

SOURCE = "def f():\n    return 1\n"
PROJECT: dict[str, str] = {
    "pyproject.toml": "[project]\nname='x'\n[project.entry-points.pytest11]\nx = 'pkg.hooks'\n",
    "conftest.py": "pytest_plugins = ['pkg.fixtures', 'third_party.plugin']\n",
    "requirements.txt": "x==1\n",
    "setup.py": "",
    "uv.lock": "",
    ".github/workflows/ci.yml": "",
    ".hidden.py": "",
    "data/golden.json": "{}",
    "src/pkg/__init__.py": "",
    "src/pkg/core.py": SOURCE,
    "src/pkg/table.csv": "1,2\n",
    "src/pkg/hooks.py": SOURCE,
    "src/pkg/fixtures.py": "pytest_plugins = 'pkg.more_fixtures,'\n",
    "src/pkg/more_fixtures.py": SOURCE,
    "src/pkg/cli_plugin.py": SOURCE,
    "src/pkg/contract.py": "class Contract:\n    def test_it(self):\n        assert self.make()\n",
    "src/pkg/cases.py": "import unittest\nclass Case(unittest.TestCase):\n    pass\n",
    "src/pkg/checks.py": "class Checks:\n    def check_all(self, x):\n        assert x\n",
    "src/pkg/store.py": "class Store:\n    def get(self):\n        return 1\n",
    "src/pkg/client.py": "class Client:\n    def test_connection(self):\n        return 1\n",
    "src/pkg/unused.py": "class Unused:\n    def test_it(self):\n        assert 1\n",
    "src/pkg/latin.py": "# coding: latin-1\nx = 1\n",
    "src/pkg/sub/mod.py": SOURCE,
    "src/pkg/sub/test_inline.py": SOURCE,
    "src/pkg/sub/tests/helper.py": SOURCE,
    "src/pkg/testing/tools.py": SOURCE,
    "src/pkg/sitecustomize.py": SOURCE,
    "src/pkg.egg-info/PKG-INFO": "",
    "src/x.pth": "",
    "checks/helper.py": SOURCE,
    "checks/spec_a.py": SOURCE,
    "tests/__init__.py": "",
    "tests/base.py": "from pkg.checks import Checks\nclass Local(Checks):\n    pass\n",
    "tests/data.py": SOURCE,
    "tests/test_core.py": (
        "from pkg.contract import Contract\nimport pkg.cases\nfrom pkg.store import Store\nfrom .base import Local\n"
        "from pkg import client\n"
        "class TestC(Contract):\n    def make(self):\n        return 1\n"
        "class Other(pkg.cases.Case):\n    def test_x(self):\n        pass\n"
        "class TestL(Local):\n    def test_l(self):\n        self.check_all(1)\n"
        "class FakeStore(Store):\n    pass\n"
        "class FakeClient(client.Client):\n    pass\n"
    ),
}
EDITABLE = (
    "src/pkg/__init__.py",
    "src/pkg/client.py",
    "src/pkg/core.py",
    "src/pkg/latin.py",
    "src/pkg/store.py",
    "src/pkg/sub/mod.py",
    "src/pkg/unused.py",
)
SETTINGS: dict[str, Any] = {"testpaths": ("tests", "checks", "src", "."), "plugins": ("pkg.cli_plugin",)}


def put(root: Path, files: Mapping[str, str]) -> None:
    for path, text in files.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)


def git_add(root: Path) -> None:
    for command in (["git", "init", "-q"], ["git", "add", "-A", "-f"]):
        environment = {"PATH": os.environ["PATH"], "HOME": str(root), "GIT_CONFIG_NOSYSTEM": "1"}
        subprocess.run(command, cwd=root, env=environment, check=True, capture_output=True)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_project(tmp_path / "root")


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Editable:
    return Editable.of(make_project(tmp_path_factory.mktemp("shared") / "root"), **SETTINGS)


def make_project(root: Path) -> Path:
    put(root, PROJECT)
    git_add(root)
    put(root, {"src/pkg/fresh.py": SOURCE, "tests/fresh_golden.json": "{}", "src/pkg/out.bin": "x"})
    put(
        root, {".venv/pyvenv.cfg": "", ".venv/lib/mod.py": SOURCE, "env/pyvenv.cfg": "", "env/mod.py": SOURCE}
    )
    (root / "src/pkg/link.py").symlink_to("core.py")
    (root / "src/linked").symlink_to("pkg")
    return root


def change(path: str, after: bytes | None = b"def f():\n    return 2\n", **facts: Any) -> FileChange:
    return FileChange(path, facts.pop("before", SOURCE.encode()), after, **facts)


def rule_of(reason: str) -> str:
    match = re.search(r"\[([a-z-]+)\]$", reason)
    assert match, reason
    return match[1]


def test_what_may_be_edited(policy: Editable) -> None:
    assert policy.editable_files() == EDITABLE
    assert policy.allowed(change("src/pkg/core.py")) == ""
    assert policy.refusals([change("src/pkg/core.py"), change("src/pkg/sub/mod.py")]) == ()


PLACES = {
    "name": [
        "/etc/passwd",
        "../x.py",
        "src/../../x.py",
        "src\\pkg\\core.py",
        "",
        ".",
        "~/x.py",
        "src/pkg/core.py\0",
        "src/pkg/core.py.",
        "src/pkg/core.py ",
        "src/pkg./core.py",
        "C:/x.py",
        "src//pkg/core.py",
        "src/./pkg/core.py",
        "src/pkg/co\u200bre.py",
        "src/pkg/core.py:stream",
        "src/aux.py",
        "src/pkg/\u202eyp.eroc",
        "src/pkg\n/x.py",
    ],
    "git": [".git/config", ".GIT/hooks/x", "sub/.git/config", "git~1/config", ".git"],
    "link-parent": ["src/linked/core.py", "src/linked/new.py"],
    "symlink": ["src/pkg/link.py"],
    "startup": [
        "src/sitecustomize.py",
        "src/pkg/sitecustomize.py",
        "UserCustomize.py",
        "src/x.pth",
        "a.pth",
        "src/usercustomize/__init__.py",
        "__editable__x.py",
    ],
    "conftest": ["conftest.py", "src/conftest.py", "src/Conftest.py", "conftest/__init__.py"],
    "configuration": [
        "pyproject.toml",
        "setup.py",
        "PyProject.toml",
        "sub/tox.ini",
        ".coveragerc",
        "pytest.ini",
        ".pytest.ini",
        "setup.cfg",
        "noxfile.py",
        "Dockerfile",
    ],
    "lock-file": ["uv.lock", "requirements.txt", "poetry.lock", "Pipfile"],
    "metadata": ["src/pkg.egg-info/PKG-INFO", "lib/x.dist-info/RECORD"],
    "environment": [".venv/lib/mod.py", "env/mod.py", "src/pkg/__pycache__/core.pyc"],
    "hidden": [".github/workflows/ci.yml", ".hidden.py", ".gitattributes", ".pre-commit-config.yaml"],
    "test-folder": [
        "tests/test_core.py",
        "tests/data.py",
        "tests/new.py",
        "Tests/x.py",
        "src/pkg/sub/tests/helper.py",
        "src/pkg/testing/tools.py",
        "checks/helper.py",
    ],
    "test-file": ["src/pkg/sub/test_inline.py", "src/pkg/core_test.py"],
    "test-plugin": [
        "src/pkg/hooks.py",
        "src/pkg/fixtures.py",
        "src/pkg/more_fixtures.py",
        "src/pkg/cli_plugin.py",
    ],
    "test-base": ["src/pkg/contract.py", "src/pkg/cases.py", "src/pkg/checks.py"],
    "not-python": ["data/golden.json", "src/pkg/table.csv", "src/pkg/core.pyi", "src/pkg/x.so", "src/pkg"],
    "same-name": ["src/pkg/Core.py", "SRC/pkg/core.py", "src/pkg/\uff43ore.py"],
    "shadows": [
        "json.py",
        "src/json.py",
        "src/pytest.py",
        "src/pkg.py",
        "pkg/__init__.py",
        "src/pkg/core/__init__.py",
        "src/pkg/sub.py",
        "src/pluggy/__init__.py",
    ],
    "new-file": ["src/pkg/brand_new.py", "src/other.py", "new/__init__.py"],
    "untracked": ["src/pkg/fresh.py"],
}


@pytest.mark.parametrize(
    ("path", "rule"), [(path, rule) for rule, paths in PLACES.items() for path in paths], ids=ascii
)
def test_refused_by_its_place(policy: Editable, path: str, rule: str) -> None:
    reason = policy.allowed(change(path))
    assert rule_of(reason) == rule
    assert "\n" not in reason
    assert reason.isprintable()


@pytest.mark.parametrize(
    ("refused", "rule"),
    [
        pytest.param(change("src/pkg/core.py", None), "deleted", id="deleted"),
        pytest.param(change("tests/test_core.py", None), "deleted", id="test-deleted"),
        pytest.param(change("src/pkg/core.py", mode_after="100755"), "mode", id="executable"),
        pytest.param(change("src/pkg/core.py", SOURCE.encode(), mode_after="100755"), "mode", id="mode-only"),
        pytest.param(
            change("src/pkg/core.py", b"/etc/passwd", mode_after="120000"), "symlink", id="becomes-link"
        ),
        pytest.param(
            change("src/pkg/n.py", b"core.py", before=None, mode_after="120000"), "symlink", id="new-link"
        ),
        pytest.param(change("src/pkg/core.py", b"x" * 320_000), "too-large", id="too-large"),
        pytest.param(change("src/pkg/core.py", b"x = '\xff'\n"), "encoding", id="not-utf-8"),
        pytest.param(change("src/pkg/core.py", b"x = 1\0\n"), "encoding", id="nul"),
        pytest.param(change("src/pkg/core.py", b"# coding: utf-7\nx = 1\n"), "encoding", id="other-encoding"),
        pytest.param(
            change("src/pkg/core.py", b"# coding: no-such\nx = 1\n"), "encoding", id="unknown-encoding"
        ),
        pytest.param(
            change("src/pkg/latin.py", b"x = 1\n", before=b"# coding: latin-1\nx = 1\n"),
            "encoding",
            id="cookie-taken",
        ),
    ],
)
def test_refused_by_what_it_does(policy: Editable, refused: FileChange, rule: str) -> None:
    assert rule_of(policy.allowed(refused)) == rule


DOC = '''
"""Module.

>>> 1 + 1
2
"""
class C:
    def m(self):
        """Prose.

        >>> C().m()
        3
        """
        return 2

    def test_connection(self):
        return 1

def test_here():
    assert C().m() == 3

class TestHere:
    def test_it(self):
        assert 1

class TestTube:
    size = 1

__test__ = {"a": ">>> 1\\n1\\n"}
'''


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        pytest.param("return 2", "return 3", "", id="code"),
        pytest.param("Prose.", "Other prose.", "", id="prose"),
        pytest.param("size = 1", "size = 2", "", id="class-that-only-sounds-like-tests"),
        pytest.param("        return 1", "        return 2", "", id="method-that-only-sounds-like-a-test"),
        pytest.param(">>> C().m()\n        3", ">>> C().m()\n        2", "doctest in `C.m`", id="expected"),
        pytest.param(">>> C().m()\n        3", "", "doctest in `C.m`", id="doctest-taken"),
        pytest.param(">>> C().m()", ">>> C().m() # doctest: +SKIP", "doctest in `C.m`", id="skipped"),
        pytest.param(">>> 1 + 1\n2", ">>> 1 + 1\n2\n>>> 1\n1", "doctest in `<module>`", id="doctest-added"),
        pytest.param("def m(self)", "def n(self)", "doctest in `C.m`", id="owner-renamed"),
        pytest.param("assert C().m() == 3", "assert C().m() == 2", "test `test_here`", id="test-function"),
        pytest.param("        assert 1", "        assert 0", "test `TestHere`", id="test-method"),
        pytest.param("def test_here():", "def no_test():", "test `test_here`", id="test-taken"),
        pytest.param('">>> 1', '">>> 2', "doctest in `__test__`", id="doctest-dictionary"),
        pytest.param("return 2", "return (", "", id="does-not-parse"),
    ],
)
def test_tests_inside_a_source_file(policy: Editable, old: str, new: str, named: str) -> None:
    assert DOC.count(old) == 1
    reason = policy.allowed(change("src/pkg/core.py", DOC.replace(old, new).encode(), before=DOC.encode()))
    assert (rule_of(reason) == "inline-tests" and named in reason) if named else not reason


def test_limits_of_a_patch(policy: Editable) -> None:
    long = b"x = 1\n" * (MAX_CHANGED_LINES + 1)
    (reason,) = policy.refusals([change("src/pkg/core.py", long, before=b"")])
    assert rule_of(reason) == "too-many-lines"
    assert not policy.refusals([change("src/pkg/core.py", long + b"y\n", before=long)])
    many = [change(path, before=b"") for path in EDITABLE]
    assert len(many) > MAX_CHANGED_FILES
    assert "too-many-files" in map(rule_of, policy.refusals(many))
    assert "twice" in map(rule_of, policy.refusals([change("src/pkg/core.py")] * 2))


def test_every_rule_is_tested() -> None:
    text = Path(__file__).read_text()
    assert [rule for rule in RULES if f'"{rule}"' not in text] == []


def test_names_in_two_unicode_forms(tmp_path: Path) -> None:
    put(tmp_path, {"caf\u00e9.py": SOURCE})
    policy = Editable.of(tmp_path)
    assert policy.editable_files() == ("caf\u00e9.py",)
    assert rule_of(policy.allowed(change(unicodedata.normalize("NFD", "caf\u00e9.py")))) == "same-name"


def test_files_that_appear_later_are_no_part_of_the_tree(root: Path) -> None:
    policy = Editable.of(root, **SETTINGS)
    put(root, {"src/pkg/late.py": SOURCE, "conf.py": SOURCE})
    assert rule_of(policy.allowed(change("src/pkg/late.py"))) == "new-file"


def test_stub_files_need_not_be_tracked(root: Path) -> None:
    policy = Editable.of(root, stubs=["src/pkg/fresh.py", "tests/data.py"], **SETTINGS)
    assert not policy.allowed(change("src/pkg/fresh.py"))
    assert rule_of(policy.allowed(change("tests/data.py"))) == "test-folder"


def test_new_modules_when_they_are_allowed(root: Path) -> None:
    policy = Editable.of(root, new_files=True, **SETTINGS)
    assert not policy.allowed(change("src/pkg/brand_new.py", before=None))
    for path, rule in {
        "src/other.py": "new-file",
        "src/json.py": "shadows",
        "src/pkg/test_new.py": "test-file",
        "src/pkg/conftest.py": "conftest",
        "src/pkg/Core.py": "same-name",
    }.items():
        assert rule_of(policy.allowed(change(path, before=None))) == rule
    latin = change("src/pkg/brand_new.py", b"# coding: latin-1\n", before=None)
    assert rule_of(policy.allowed(latin)) == "encoding"


def test_patterns_of_pytest_decide_what_a_test_file_is(root: Path) -> None:
    wide = Editable.of(root, python_files=["*.py"], test_files=["src/pkg/store.py"], **SETTINGS)
    assert "src/pkg/core.py" in wide.editable_files()
    assert rule_of(wide.why_not("src/pkg/store.py")) == "test-file"
    other = Editable.of(root, python_files=["core*.py", "sub/mod.py"], **SETTINGS)
    assert {rule_of(other.why_not(f"src/pkg/{name}")) for name in ("core.py", "sub/mod.py")} == {"test-file"}
    assert "src/pkg/sub/test_inline.py" in other.editable_files()


def test_without_git_only_what_can_be_imported(tmp_path: Path) -> None:
    put(
        tmp_path,
        {
            "solution.py": SOURCE,
            "test_solution.py": "import solution\n",
            "cases.jsonl": "",
            "pkg/__init__.py": "",
            "pkg/mod.py": SOURCE,
            "pkg/sub/deep.py": SOURCE,
            "scripts/tool.py": SOURCE,
            "not-a-module.py": SOURCE,
            "docs/__init__.py": "",
            "src/space/mod.py": SOURCE,
            "lib/inner/mod.py": SOURCE,
            "run.log": "",
            "build/pkg/mod.py": SOURCE,
        },
    )
    policy = Editable.of(tmp_path, import_roots=["./lib/"])
    assert policy.editable_files() == (
        "lib/inner/mod.py",
        "pkg/__init__.py",
        "pkg/mod.py",
        "pkg/sub/deep.py",
        "solution.py",
        "src/space/mod.py",
    )
    assert rule_of(policy.why_not("scripts/tool.py")) == "not-importable"
    assert policy.protected_files() == (
        "cases.jsonl",
        "not-a-module.py",
        "scripts/tool.py",
        "test_solution.py",
    )


def test_git_repository_that_tracks_nothing_here_counts_as_none(tmp_path: Path) -> None:
    put(tmp_path, {"solution.py": SOURCE})
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    assert Editable.of(tmp_path).editable_files() == ("solution.py",)


def test_project_in_a_subfolder_of_its_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, {"one/a.py": SOURCE, "two/b.py": SOURCE})
    git_add(tmp_path)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    put(tmp_path, {"one/untracked.py": SOURCE})
    assert Editable.of(tmp_path / "one").editable_files() == ("a.py",)


def test_programs_named_by_the_repository_are_not_started(root: Path) -> None:
    trap = root.parent / "trap"
    trap.write_text(f"#!/bin/sh\ntouch {root.parent}/sprung\n")
    trap.chmod(0o755)
    with (root / ".git/config").open("a") as config:
        config.write(f"[core]\n\tfsmonitor = {trap}\n\thooksPath = {root.parent}\n\tpager = {trap}\n")
    assert Editable.of(root, **SETTINGS).editable_files() == EDITABLE
    assert not (root.parent / "sprung").exists()


def test_protected_files_are_few_and_hold_everything_that_steers_tests(policy: Editable) -> None:
    protected = policy.protected_files()
    assert {"tests", "checks", "src/pkg/sub/tests", "src/pkg/testing"} <= set(protected)
    assert {"conftest.py", "pyproject.toml", "setup.py", "data/golden.json", "src/pkg/table.csv"} <= set(
        protected
    )
    assert {"src/pkg/hooks.py", "src/pkg/contract.py", "src/pkg/sub/test_inline.py"} <= set(protected)
    assert not any(path.startswith((".git", ".venv", "env", "tests/")) for path in protected)
    assert "src/pkg/out.bin" not in protected
    covered = {
        path for path in EDITABLE for folder in protected if path == folder or path.startswith(f"{folder}/")
    }
    assert covered == set()


def test_large_data_folders_are_protected_whole(tmp_path: Path) -> None:
    put(tmp_path, {"m.py": SOURCE, **{f"data/{number}.json": "" for number in range(40)}})
    assert Editable.of(tmp_path).protected_files() == ("data",)


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(
            lambda root: (root / "tests/test_core.py").write_text("def broken(:\n"), id="syntax-error"
        ),
        pytest.param(lambda root: (root / "tests/test_core.py").write_bytes(b"\xff\0"), id="not-a-text"),
        pytest.param(lambda root: (root / "pyproject.toml").write_text("[["), id="broken-toml"),
        pytest.param(lambda root: os.mkfifo(root / "src/pkg/pipe.py"), id="fifo"),
        pytest.param(lambda root: (root / "src/loop").symlink_to("."), id="link-loop"),
    ],
)
def test_odd_trees_are_no_reason_to_fail(root: Path, damage: Callable[[Path], object]) -> None:
    damage(root)
    assert "src/pkg/core.py" in Editable.of(root, **SETTINGS).editable_files()


def test_tree_and_policy_agree_on_links(policy: Editable) -> None:
    content = Tree(policy.listing.root).read("src/pkg/link.py")
    assert (
        rule_of(policy.allowed(FileChange("src/pkg/link.py", content, b"x", "120000", "120000"))) == "symlink"
    )
