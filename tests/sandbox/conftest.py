"""Open sandboxes: as root and as an ordinary user, each where that is possible here."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from sandbox_bench import Bench, in_other_process, in_this_process, open_bench


@pytest.fixture(scope="session", params=["root", "ordinary"])
def bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    """The conformance suite runs on each: the escapes that work differ between root and others."""
    if sys.platform != "linux":
        pytest.skip("the local sandbox needs Linux")
    root_here = os.geteuid() == 0
    if request.param == "root" and not root_here:
        pytest.skip("not root here")
    folder = Path(tempfile.mkdtemp(prefix="autofix-bench-"))
    folder.chmod(0o755)
    try:
        if request.param == "root" or not root_here:
            yield from open_bench(folder, in_this_process)
        else:
            yield from open_bench(folder, in_other_process)
    finally:
        shutil.rmtree(folder)
