"""What plain `pytest` costs with the plugin and without: CPU time of whole processes, several interleaved runs.

    python benchmarks/idle.py [--runs 9] [--limit 1.05]

Other plugins are switched off, so that their cost hides nothing. With `--limit` the exit status is 1 when the ratio
of the fastest runs is above it.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

TESTS = "import pytest\n\n\n@pytest.mark.parametrize('n', range(50))\ndef test_it(n):\n    assert n >= 0\n"
PLUGIN = ("-p", "pytest_autofix.plugin")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=9, help="runs of each kind (default: 9)")
    parser.add_argument("--limit", type=float, help="fail above this ratio")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="autofix-idle-") as name:
        folder = Path(name)
        (folder / "test_it.py").write_text(TESTS, encoding="utf-8")
        for plugins in ((), PLUGIN):
            cpu_seconds(folder, *plugins)  # writes the byte code
        plain: list[float] = []
        with_us: list[float] = []
        for _ in range(options.runs):
            plain.append(cpu_seconds(folder))
            with_us.append(cpu_seconds(folder, *PLUGIN))
    ratio = min(with_us) / min(plain)
    print(
        f"pytest             min {min(plain) * 1000:6.1f} ms  median {statistics.median(plain) * 1000:6.1f} ms"
    )
    print(
        f"pytest with plugin min {min(with_us) * 1000:6.1f} ms  median {statistics.median(with_us) * 1000:6.1f} ms"
    )
    print(
        f"ratio {ratio:.3f} (fastest runs), {statistics.median(with_us) / statistics.median(plain):.3f} (medians)"
    )
    return 1 if options.limit and ratio > options.limit else 0


def cpu_seconds(folder: Path, *arguments: str) -> float:
    """User and system time of one pytest process."""
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments],
        cwd=folder,
        env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        stdout=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"pytest {' '.join(arguments)} ended with status {process.returncode}")
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    raise SystemExit(main())
