"""`Frontier`: what the search tries next. Singles first, then pairs, then what ran out of time once more."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterator, Mapping

from pytest_autofix.candidates.candidate import Candidate
from pytest_autofix.candidates.search.enumerate import enumerate_candidates
from pytest_autofix.candidates.search.pairs import pairs
from pytest_autofix.solver.execution import Trial
from pytest_autofix.tasks.task import Task

__all__ = ["Frontier"]

SINGLES_FIRST = 4000
"""After so many singles more than nine in ten of what singles find is found: pairs take turns from here on."""
KEPT_SINGLES = 1500  #: the best singles, to be combined
KEPT_SLOW = 200  #: candidates that ran out of time, to be tried once more


class Frontier:
    """The order of the search for one task, and what it learns while it runs. Not thread-safe."""

    def __init__(self, task: Task, texts: Mapping[str, str], *, skip: int = 0) -> None:
        """`skip`: singles that an earlier, interrupted run has tried already."""
        self._failing = frozenset(task.nodeids)
        self._texts = texts
        self._singles = itertools.islice(enumerate_candidates(task, texts), skip, None)
        self._given = skip
        self._best: list[Candidate] = []
        self._partial: list[Candidate] = []
        self._slow: list[Candidate] = []
        self._back: deque[Candidate] = deque()
        self._pairs: Iterator[Candidate] | None = None

    def take(self, count: int) -> list[Candidate]:
        """The next candidates, none if everything was tried."""
        taken = [self._back.popleft() for _ in range(min(count, len(self._back)))]
        if len(taken) < count and self._given < SINGLES_FIRST:
            taken += self._take_singles(min(count - len(taken), SINGLES_FIRST - self._given))
        while len(taken) < count:
            more = self._take_pairs((count - len(taken) + 1) // 2)
            more += self._take_singles(max(1, (count - len(taken)) // 2))
            if not more:
                break
            taken += more
        return taken

    def put_back(self, candidates: list[Candidate]) -> None:
        """Taken, but not tried."""
        self._back.extendleft(reversed(candidates))

    def learn(self, trial: Trial) -> None:
        """Remember what is worth a second look."""
        if trial.status == "timeout" and trial.warm and len(self._slow) < KEPT_SLOW:
            self._slow.append(trial.candidate)
        elif trial.status == "failed" and self._failing.intersection(trial.passed):
            self._partial.append(trial.candidate)

    def slow(self) -> list[Candidate]:
        """Candidates that ran out of time in a trial, best first; each is handed out once."""
        slow, self._slow = self._slow, []
        return sorted(slow, key=lambda candidate: -candidate.score)

    def _take_singles(self, count: int) -> list[Candidate]:
        taken = list(itertools.islice(self._singles, count))
        self._given += len(taken)
        self._best += taken[: max(0, KEPT_SINGLES - len(self._best))]
        return taken

    def _take_pairs(self, count: int) -> list[Candidate]:
        if self._pairs is None:
            self._pairs = pairs(self._partial, self._best, self._texts)
        return list(itertools.islice(self._pairs, count))
