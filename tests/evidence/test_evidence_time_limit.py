"""Every test has a time limit under --autosolve; a hanging one is a failure with its stack."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from pytest_autofix.errors import ConfigurationError
from pytest_autofix.evidence.failure import Failure
from pytest_autofix.evidence.recorder import Recorder
from pytest_autofix.evidence.time_limit import apply_time_limit

Write = Callable[[dict[str, str]], None]


class Limiter:
    """Stands for our plugin: it calls `apply_time_limit` first of all plugins."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.error = ""

    @pytest.hookimpl(tryfirst=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        try:
            apply_time_limit(config, self.seconds)
        except ConfigurationError as error:
            self.error = str(error)


LOOP = "def spin(number):\n    while True:\n        number += 1\n"
HANG = "import lib\ndef test_x():\n    lib.spin(1)\n"


@pytest.fixture
def hang(pytester: pytest.Pytester, write: Write) -> Callable[..., Failure]:
    def hang(files: dict[str, str], *arguments: str, seconds: float = 0.4) -> Failure:
        write(files)
        pytester.syspathinsert()
        recorder = Recorder()
        pytester.runpytest_inprocess(
            *("-p", "no:cacheprovider", "-p", "no:hypothesispytest"),
            *("-o", "asyncio_default_fixture_loop_scope=function"),
            *arguments,
            plugins=[Limiter(seconds), recorder],
        )
        (failure,) = recorder.failures()
        return failure

    return hang


def test_a_loop(hang: Callable[..., Failure]) -> None:
    failure = hang({"lib.py": LOOP, "test_x.py": HANG})
    assert (failure.kind, failure.phase) == ("timeout", "call")
    assert re.match(r"Timeout \(?>0.4s", failure.message)
    assert [(frame.path, frame.function) for frame in failure.frames] == [
        ("test_x.py", "test_x"),
        ("lib.py", "spin"),
    ]
    assert int(failure.frames[-1].locals["number"]) > 1
    assert failure.frames[-1].line in (2, 3)


def test_a_fixture(hang: Callable[..., Failure]) -> None:
    failure = hang(
        {
            "lib.py": LOOP,
            "test_x.py": """
            import lib, pytest
            @pytest.fixture
            def slow(): lib.spin(1)
            def test_x(slow): pass
            """,
        }
    )
    assert (failure.kind, failure.phase) == ("timeout", "setup")
    assert failure.frames[-1].function == "spin"


def test_an_exception_on_the_way_out_does_not_hide_the_time_out(hang: Callable[..., Failure]) -> None:
    failure = hang(
        {
            "lib.py": LOOP,
            "test_x.py": """
            import lib
            def test_x():
                try:
                    lib.spin(1)
                finally:
                    raise OSError("closing failed")
            """,
        }
    )
    assert failure.kind == "timeout"
    assert [fact.type for fact in failure.exceptions] == ["OSError", "Failed"]
    assert failure.exceptions[1].frames[-1].function == "spin"


WAITS = """
import asyncio

async def outer(number):
    await inner(number + 1)

async def inner(number):
    await asyncio.Event().wait()
"""


@pytest.mark.parametrize(
    "test",
    [
        pytest.param("@pytest.mark.asyncio\nasync def test_x():\n    await lib.outer(1)\n", id="asyncio"),
        pytest.param(
            "@pytest.fixture\ndef anyio_backend():\n    return 'asyncio'\n"
            "@pytest.mark.anyio\nasync def test_x(anyio_backend):\n    await lib.outer(1)\n",
            id="anyio",
        ),
        pytest.param(
            "@pytest.mark.asyncio\nasync def test_x():\n    async with asyncio.TaskGroup() as group:\n"
            "        group.create_task(lib.outer(1))\n",
            id="task-group",
        ),
        pytest.param("def test_x():\n    asyncio.run(lib.outer(1))\n", id="asyncio-run"),
    ],
)
def test_coroutines_that_wait_for_ever(hang: Callable[..., Failure], test: str) -> None:
    failure = hang({"lib.py": WAITS, "test_x.py": f"import asyncio, lib, pytest\n{test}"})
    assert failure.kind == "timeout"
    assert failure.frames[0].function == "test_x"
    assert [(frame.function, frame.locals) for frame in failure.frames[-2:]] == [
        ("outer", {"number": "1"}),
        ("inner", {"number": "2"}),
    ]


def test_a_thread_that_never_ends(hang: Callable[..., Failure]) -> None:
    failure = hang(
        {
            "lib.py": "def spin(stop):\n    while not stop.wait(0.01):\n        pass\n",
            "test_x.py": """
            import lib, threading
            def test_x():
                stop = threading.Event()
                thread = threading.Thread(target=lib.spin, args=[stop], name="worker")
                thread.start()
                try:
                    thread.join()
                finally:
                    stop.set()
            """,
        }
    )
    assert failure.kind == "timeout"
    assert failure.frames[-1].source == "thread.join()"
    thread = failure.exceptions[-1]
    assert thread.message == "thread worker at the time-out"
    assert [frame.function for frame in thread.frames] == ["spin"]


@pytest.mark.parametrize(
    ("files", "arguments", "environment", "limit"),
    [
        pytest.param({}, ["--timeout=0.3"], {}, "0.3s", id="command-line"),
        pytest.param({"pytest.ini": "[pytest]\ntimeout = 0.3\n"}, [], {}, "0.3s", id="ini"),
        pytest.param({}, [], {"PYTEST_TIMEOUT": "0.3"}, "0.3s", id="environment"),
        pytest.param(
            {"test_x.py": "import lib, pytest\n@pytest.mark.timeout(0.3)\ndef test_x():\n    lib.spin(1)\n"},
            [],
            {},
            "0.3s",
            id="marker",
        ),
        pytest.param(
            {"pytest.ini": "[pytest]\ntimeout_method = thread\n"},
            [],
            {},
            "0.6s",
            id="method-in-ini",
        ),
    ],
)
def test_the_user_s_own_limit_wins(
    hang: Callable[..., Failure],
    monkeypatch: pytest.MonkeyPatch,
    files: dict[str, str],
    arguments: list[str],
    environment: dict[str, str],
    limit: str,
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    failure = hang({"lib.py": LOOP, "test_x.py": HANG, **files}, *arguments, seconds=0.6)
    assert f">{limit}" in failure.message


def test_zero_switches_the_limit_off(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("import time\ndef test_x(): time.sleep(0.5)\n")
    pytester.runpytest_inprocess("--timeout=0", plugins=[Limiter(0.1)]).assert_outcomes(passed=1)


def test_switched_off(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_x(): pass\n")
    limiter = Limiter(1)
    pytester.runpytest_inprocess("-p", "no:timeout", plugins=[limiter]).assert_outcomes(passed=1)
    assert "`-p no:timeout` switches it off" in limiter.error
    assert "\n" not in limiter.error


def test_not_loaded_and_not_installed(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile("def test_x(): pass\n")
    limiter = Limiter(1)
    pytester.runpytest_inprocess(plugins=[limiter]).assert_outcomes(passed=1)
    assert "add `-p pytest_timeout`" in limiter.error
    monkeypatch.setattr("pytest_autofix.evidence.time_limit.find_spec", lambda name: None)
    pytester.runpytest_inprocess(plugins=[limiter]).assert_outcomes(passed=1)
    assert "pip install 'pytest-autofix[solve]'" in limiter.error


def test_loaded_by_its_module_name(hang: Callable[..., Failure], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    assert hang({"lib.py": LOOP, "test_x.py": HANG}, "-p", "pytest_timeout").kind == "timeout"
