"""The example that the README runs: it fails as it says, and each of its bugs is one small edit."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parent.parent / "examples" / "quickstart"

FAILING = {
    "tests/test_cart.py::test_voucher_is_taken_off",
    "tests/test_cart.py::test_voucher_does_not_end_free_shipping",
    "tests/test_cart.py::test_voucher_above_the_total",
    "tests/test_catalog.py::test_unknown_article",
    "tests/test_catalog.py::test_unknown_article_in_an_empty_catalog",
    "tests/test_customers.py::test_label",
    "tests/test_customers.py::test_label_of_another",
    "tests/test_paging.py::test_page_count[0-10-0]",
    "tests/test_paging.py::test_page_count[10-10-1]",
    "tests/test_paging.py::test_page_count[30-10-3]",
    "tests/test_paging.py::test_page_count[5-1-5]",
    "tests/test_paging.py::test_page_count_fits_the_pages",
    "tests/test_ratings.py::test_nobody_has_rated",
    "tests/test_shipping.py::test_between_limits",
    "tests/test_shipping.py::test_too_heavy",
}

FIXES = {  # module of the example → wrong text, right text
    "cart": ("shipping(goods) + voucher", "shipping(goods) - voucher"),
    "paging": ("(count + size) //", "(count + size - 1) //"),
    "customers": (
        'full_name(customer["last"], customer["first"])',
        'full_name(customer["first"], customer["last"])',
    ),
    "catalog": ('ValueError(f"no article', 'KeyError(f"no article'),
    "ratings": ("    return round", "    if not stars:\n        return 0\n    return round"),
    "shipping": ("low = middle\n", "low = middle + 1\n"),
}


@pytest.fixture
def example(tmp_path: Path) -> Path:
    changed = subprocess.run(
        ["git", "diff", "--quiet", "HEAD", "--", "shop"], cwd=EXAMPLE, check=False, capture_output=True
    )
    if changed.returncode == 1 and not run(EXAMPLE):
        pytest.skip("examples/quickstart was repaired here; `git checkout examples` brings its bugs back")
    return shutil.copytree(
        EXAMPLE, tmp_path / "quickstart", ignore=shutil.ignore_patterns("__pycache__", ".*")
    )


def run(folder: Path, *arguments: str) -> set[str]:
    """Node ids that fail in a plain pytest run of our own kind of user."""
    completed = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rfE", "-p", "no:cacheprovider", "--tb=no", *arguments],
        cwd=folder,
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
        env={"COLUMNS": "1000", "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert completed.returncode in (0, 1), completed.stdout + completed.stderr
    lines = [line for line in completed.stdout.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    return {line.split(" ", 2)[1] for line in lines}


def test_exactly_these_tests_fail_without_us(example: Path) -> None:
    assert run(example) == FAILING


def test_each_bug_is_one_edit(example: Path) -> None:
    for module, (wrong, right) in FIXES.items():
        path = example / "shop" / f"{module}.py"
        source = path.read_text(encoding="utf-8")
        assert source.count(wrong) == 1, module
        path.write_text(source.replace(wrong, right), encoding="utf-8")
    assert run(example) == set()
