"""Repair small real programs with half of their cases, then check the other half in a plain pytest run.

    python benchmarks/quixbugs.py --data FILE [--only ID ...] [--seconds 60] [--jobs 2] [--out FILE]

`FILE` has one JSON object a line: `id`, `buggy` (text of solution.py), `tests` (text of test_solution.py) and
`support` (further files, name → text; `cases.jsonl` holds one case a line). Shown is every second row of
`cases.jsonl` or, where there are no rows, every second test function. The command under measurement is the public one.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import json
import os
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

Half = Literal["shown", "hidden"]
MEMORY = 2 << 30  #: bytes of each process that we start for checking
CHECK_SECONDS = 60  #: for the hidden half, a right program can be slow


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one program."""

    id: str
    outcome: str  #: of its tasks, joined by `+`
    accepted: bool  #: solution.py was changed
    right: bool | None  #: the hidden half passes; None if nothing was accepted
    candidates: int
    seconds: float  #: wall clock of the whole command
    solve_seconds: float  #: of that for the tasks, as the report says
    warm_cpu: float | None  #: CPU seconds of one candidate tried warm; see `warm_seconds`
    cold_cpu: float | None  #: CPU seconds of a cold pytest of the same tests on the program as it was
    detail: str = ""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="the programs, one JSON object a line")
    parser.add_argument("--only", nargs="+", default=(), metavar="ID", help="ids or their last part")
    parser.add_argument("--seconds", type=float, default=60, help="for each program (default: 60)")
    parser.add_argument("--jobs", type=int, default=2, help="processes for each program (default: 2)")
    parser.add_argument("--test-seconds", type=float, default=5, help="limit of one test (default: 5)")
    parser.add_argument("--sandbox", default="auto", help="as --autosolve-sandbox (default: auto)")
    parser.add_argument("--out", type=Path, help="also write the results here, one JSON object a line")
    parser.add_argument("--keep", type=Path, help="keep projects, output and reports below this folder")
    options = parser.parse_args()
    programs = [
        json.loads(line) for line in options.data.read_text(encoding="utf-8").splitlines() if line.strip()
    ]
    wanted = set(options.only)
    chosen = [
        program
        for program in programs
        if not wanted or program["id"] in wanted or program["id"].rpartition("/")[2] in wanted
    ]
    if not chosen:
        parser.error(f"no program of {options.data} is named {', '.join(sorted(wanted)) or 'anything'}")
    if options.keep and options.keep.exists() and any(options.keep.iterdir()):
        parser.error(f"{options.keep} is not empty")
    width = max(len(program["id"]) for program in chosen)
    print(f"{'program':{width}}  {'outcome':12} {'hidden':6} {'candidates':>10} {'seconds':>8}")
    results = []
    for program in chosen:
        with tempfile.TemporaryDirectory(prefix="autofix-bench-") as name:
            folder = options.keep / program["id"].replace("/", "-") if options.keep else Path(name)
            result = repair(program, folder, options)
        results.append(result)
        hidden = {None: "-", True: "right", False: "WRONG"}[result.right]
        print(
            f"{result.id:{width}}  {result.outcome:12} {hidden:6} {result.candidates:10} {result.seconds:8.1f}"
            f"  {result.detail}".rstrip(),
            flush=True,
        )
    if options.out:
        options.out.write_text(
            "".join(json.dumps(asdict(result)) + "\n" for result in results), encoding="utf-8"
        )
    summarise(results)
    return 0


def repair(program: Mapping[str, Any], folder: Path, options: argparse.Namespace) -> Result:
    """Run the public command on one program and check what it left."""
    project = folder / "project"
    write_project(project, program, "shown")
    git(project, "init", "-q")
    git(project, "add", "-A")
    git(
        project, "-c", "user.name=bench", "-c", "user.email=bench@localhost", "commit", "-q", "-m", "as found"
    )
    report = folder / "report.json"
    command = [
        *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--autosolve"),
        *(
            "--autosolve-strategy",
            "search",
            "--autosolve-mode",
            "apply",
            "--autosolve-sandbox",
            options.sandbox,
        ),
        *(
            "--autosolve-max-seconds",
            str(options.seconds),
            "--autosolve-search-seconds",
            str(options.seconds),
        ),
        *("--autosolve-jobs", str(options.jobs), "--autosolve-timeout", str(options.test_seconds)),
        *("--autosolve-report", str(report)),
    ]
    begin = time.monotonic()
    ended = execute(command, project, seconds=10 * options.seconds + 300)
    seconds = time.monotonic() - begin
    (folder / "output.txt").write_text(ended.output, encoding="utf-8", errors="backslashreplace")
    try:
        tasks = json.loads(report.read_text(encoding="utf-8"))["tasks"]
    except (OSError, ValueError, KeyError) as error:
        tasks, detail = [], f"no report ({type(error).__name__}): {last_line(ended.output)}"
    else:
        unsolved = [f"{task['outcome']}: {task['reason']}" for task in tasks if task["outcome"] != "solved"]
        detail = "; ".join(unsolved)[:100]
    solution = (project / "solution.py").read_text(encoding="utf-8")
    accepted = solution != program["buggy"]
    return Result(
        id=program["id"],
        outcome="+".join(sorted({task["outcome"] for task in tasks})) or "none",
        accepted=accepted,
        right=check(program, solution, folder / "hidden") if accepted else None,
        candidates=sum(task["cost"]["candidates_tried"] for task in tasks),
        seconds=seconds,
        solve_seconds=sum(task["cost"]["seconds"] for task in tasks),
        warm_cpu=mean(warm_seconds(task) for task in tasks),
        cold_cpu=cold_cpu(program, folder / "cold"),
        detail=detail,
    )


def write_project(folder: Path, program: Mapping[str, Any], half: Half) -> None:
    """The program with one half of its cases; without rows, with every second test function."""
    folder.mkdir(parents=True)
    support = dict(program["support"])
    tests = program["tests"]
    offset = 0 if half == "shown" else 1
    if "cases.jsonl" in support:
        rows = [row for row in support["cases.jsonl"].splitlines(keepends=True) if row.strip()]
        support["cases.jsonl"] = "".join(rows[offset::2])
    else:
        tests = every_second_test(tests, offset)
    files = {"solution.py": program["buggy"], "test_solution.py": tests} | support
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8", newline="")


def every_second_test(source: str, offset: int) -> str:
    """The test module without the other half of its functions; all of them if there is only one."""
    tree = ast.parse(source)
    tests = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test")]
    if len(tests) < 2:
        return source
    lines = source.splitlines(keepends=True)
    for number, node in enumerate(tests):
        if number % 2 != offset:
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            last = node.end_lineno or node.lineno
            lines[first - 1 : last] = [""] * (last - first + 1)
    return "".join(lines)


def check(program: Mapping[str, Any], solution: str, folder: Path) -> bool:
    """Whether the hidden half passes with that solution, in a plain pytest run."""
    write_project(folder, {**program, "buggy": solution}, "hidden")
    ended = execute(plain_pytest(), folder, seconds=CHECK_SECONDS, limited=True)
    return ended.status == 0


def cold_cpu(program: Mapping[str, Any], folder: Path) -> float | None:
    """CPU seconds of a cold pytest that ends at the first failure, None if the program hangs in it."""
    write_project(folder, program, "shown")
    ended = execute(plain_pytest("-x"), folder, seconds=10, limited=True)
    return ended.cpu if ended.status in (0, 1) else None


def plain_pytest(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]


@dataclass(frozen=True, slots=True)
class Ended:
    status: int | None  #: None: killed at the limit
    output: str
    cpu: float


def execute(command: Sequence[str], folder: Path, *, seconds: float, limited: bool = False) -> Ended:
    """Run to the end or to the limit, then end everything that was started.

    `limited`: a repaired program is somebody's unchecked code; it gets bounded memory and CPU time, and no plugins.
    """
    limits = f"import resource as r; r.setrlimit(r.RLIMIT_AS, ({MEMORY},) * 2)"
    limits += f"; r.setrlimit(r.RLIMIT_CPU, ({int(seconds)},) * 2)"
    become = "import os, sys; os.execv(sys.argv[1], sys.argv[1:])"
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "AUTOSOLVE_"))
    }
    if limited:
        command = [sys.executable, "-c", f"{limits}; {become}", *command]
        environment |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment | {"COLUMNS": "120"},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        status: int | None
        try:
            status = process.wait(seconds)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            end_group(process)
        output.seek(0)
        text = output.read(1 << 20).decode("utf-8", "replace")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Ended(status, text, cpu)


def end_group(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(
        ["git", "-c", "init.defaultBranch=main", *arguments], cwd=folder, check=True, capture_output=True
    )


def last_line(text: str) -> str:
    return next((line for line in reversed(text.splitlines()) if line.strip()), "no output")


def warm_seconds(task: Mapping[str, Any]) -> float | None:
    """CPU seconds of one candidate, as the report says; else the wall clock of its trial, which is never less."""
    measured: float | None = task["cost"].get("warm_cpu_seconds")
    if measured:
        return measured
    search = [attempt for attempt in task["attempts"] if attempt["source"] == "search"]
    count = sum(attempt.get("count", 1) for attempt in search)
    return sum(attempt["seconds"] for attempt in search) / count if count else None


def mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value]
    return statistics.fmean(known) if known else None


def summarise(results: Sequence[Result]) -> None:
    right = sum(result.right is True for result in results)
    wrong = sum(result.right is False for result in results)
    candidates = sum(result.candidates for result in results)
    solving = sum(result.solve_seconds for result in results)
    print()
    print(f"{right} of {len(results)} right on the hidden half, {wrong} accepted and wrong")
    print(
        f"{candidates} candidates in {solving:.0f} s of solving: {candidates / max(solving, 1e-9):.0f} candidates/s"
    )
    pairs = [
        (result.cold_cpu, result.warm_cpu)
        for result in results
        if result.cold_cpu and result.warm_cpu is not None
    ]
    if pairs:
        cold, warm = (statistics.median(pair[side] for pair in pairs) for side in (0, 1))
        ratio = statistics.median(cold / warm for cold, warm in pairs)
        print(
            f"CPU, median of {len(pairs)}: cold pytest {cold * 1000:.0f} ms,"
            f" warm candidate {warm * 1000:.1f} ms (at most): {ratio:.1f} times less"
        )
    else:
        cold_only = [result.cold_cpu for result in results if result.cold_cpu]
        print(
            f"CPU: cold pytest {statistics.median(cold_only or [0.0]) * 1000:.0f} ms; the report names no warm one"
        )


if __name__ == "__main__":
    raise SystemExit(main())
