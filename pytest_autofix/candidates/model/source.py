"""`ModelSource`: candidates for a task from a chat model, one fresh prompt a round, never a growing chat.

A conversation that grows costs its whole length again with each turn and keeps wrong ideas in front of the model; a
fresh prompt with the best candidate so far and what happened to it does not.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from pytest_autofix.candidates.candidate import Candidate, Origin, normalised_hash
from pytest_autofix.candidates.model.client import Message
from pytest_autofix.candidates.model.edits import changed_files, edits_between
from pytest_autofix.candidates.model.facts import shorten
from pytest_autofix.candidates.model.prompts import fence, load_prompt
from pytest_autofix.candidates.model.reply import parse_reply
from pytest_autofix.candidates.model.spec import build_spec
from pytest_autofix.errors import BudgetExceeded, ModelReplyUnusable
from pytest_autofix.redact import redact

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from pytest_autofix.budget import Budget
    from pytest_autofix.candidates.model.client import ChatClient, Reply
    from pytest_autofix.candidates.model.spec import Spec
    from pytest_autofix.tasks.task import Task

__all__ = ["Feedback", "ModelCall", "ModelSource", "Proposal"]

_TEMPERATURES = (0.0, 0.6, 0.9)  #: of the samples of a first round: the likeliest answer, then others
_FEEDBACK_TEMPERATURE = 0.3
_REPEATED_TEMPERATURE = 1.0
_OLD_ATTEMPTS = 4


@dataclass(frozen=True, slots=True)
class Feedback:
    """What happened to an earlier candidate, or to a reply that held none."""

    candidate_diff: str  #: unified diff, empty when the reply was unusable
    failed: str = ""  #: node id of the test that failed first
    message: str = ""  #: what it said; of an unusable reply the reason
    passed: tuple[str, ...] = ()  #: node ids of tests of the task that passed


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One call, for the report."""

    model: str
    prompt: str  #: names and versions of the prompt files
    hash: str  #: of the candidate, empty when the reply held none
    result: str  #: `proposed`, `repeated`, `unchanged`, or why the reply was unusable
    seconds: float
    input_tokens: int
    output_tokens: int
    estimated: bool


@dataclass(frozen=True, slots=True)
class Proposal:
    """What one round gave."""

    candidates: tuple[Candidate, ...]
    calls: tuple[ModelCall, ...]
    feedback: tuple[Feedback, ...] = ()  #: for the next round: replies that could not be tried
    notes: tuple[str, ...] = ()  #: for people
    stopped: str = ""  #: the budget ended during the round, and which limit it was

    @property
    def input_tokens(self) -> int:
        """Tokens of all prompts of the round."""
        return sum(call.input_tokens for call in self.calls)

    @property
    def output_tokens(self) -> int:
        """Tokens of all replies of the round."""
        return sum(call.output_tokens for call in self.calls)


@dataclass
class ModelSource:
    """Asks a model for candidates. Thread-safe, one for a whole run."""

    client: ChatClient
    budget: Budget
    samples: int = 1  #: candidates of a first round
    prompt_tokens: int = 6000  #: at most, of the spec
    repeats: int = 1  #: calls more when a reply only repeats what is known
    _seen: dict[str, set[str]] = field(default_factory=dict, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def propose(
        self,
        task: Task,
        originals: Mapping[str, str],
        tests: Mapping[str, str],
        feedback: Sequence[Feedback] = (),
        *,
        hint: str = "",
        seen: Collection[str] = (),
    ) -> Proposal:
        """One round for the task: a first one without `feedback`, else one that builds on it.

        `originals` and `tests` are the texts of the files, by relative path; `seen` are hashes of candidates that
        need not be proposed again, beside those this source has proposed itself. A reply that cannot be tried is no
        error: its reason is in `Proposal.feedback`. Raises `BudgetExceeded` when nothing could be asked at all,
        `ModelError` when no model answers, `PatchError` when the task has no target.
        """
        spec = build_spec(task, originals, tests, max_tokens=self.prompt_tokens, hint=hint)
        round_ = _Round(self, task, originals, spec, frozenset(seen))
        temperatures = (_FEEDBACK_TEMPERATURE,) if feedback else _spread(self.samples)
        stopped = ""
        try:
            for temperature in temperatures:
                if not round_.ask(temperature, feedback):
                    for _ in range(self.repeats):
                        # Its text is what it repeats: without the attempt in the prompt the model starts afresh.
                        if round_.ask(_REPEATED_TEMPERATURE, (), first=len(round_.calls)):
                            break
        except BudgetExceeded as error:
            if not round_.calls:
                raise
            stopped = str(error)
        return Proposal(
            tuple(round_.candidates),
            tuple(round_.calls),
            tuple(round_.feedback),
            tuple(round_.notes),
            stopped,
        )

    def is_new(self, task: Task, digest: str) -> bool:
        """Remember a candidate of a task; False if it was known."""
        with self._lock:
            known = self._seen.setdefault(task.fingerprint, set())
            if digest in known:
                return False
            known.add(digest)
            return True


class _Round:
    """The calls of one round and what came of them."""

    def __init__(
        self, source: ModelSource, task: Task, originals: Mapping[str, str], spec: Spec, seen: frozenset[str]
    ) -> None:
        self.source, self.task, self.originals, self.spec, self.seen = source, task, originals, spec, seen
        self.allowed = [path for path in task.allowed_files if path in originals]
        self.calls: list[ModelCall] = []
        self.candidates: list[Candidate] = []
        self.feedback: list[Feedback] = []
        self.notes: list[str] = [f"not shown to the model: {'; '.join(spec.cuts)}"] if spec.cuts else []

    def ask(self, temperature: float, feedback: Sequence[Feedback], *, first: int = 0) -> bool:
        """One call; False if the reply only repeats what is known."""
        messages, label = self._prompt(feedback)
        reply = self.source.client.complete(
            messages,
            budget=self.source.budget,
            temperature=temperature,
            first=first % len(self.source.client.endpoints),
        )
        result, digest = self._take(reply, label)
        usage = reply.usage
        self.calls.append(
            ModelCall(
                reply.model,
                label,
                digest,
                result,
                reply.seconds,
                usage.input_tokens,
                usage.output_tokens,
                usage.estimated,
            )
        )
        return result not in ("repeated", "unchanged")

    def _prompt(self, feedback: Sequence[Feedback]) -> tuple[list[Message], str]:
        prompt = load_prompt("feedback" if feedback else "repair")
        answer = load_prompt(self.spec.format)
        best = self.spec.targets[0]
        files = ""
        if len({target.path for target in self.spec.targets}) > 1:
            files = "\nBegin each block with a comment that names the file: `# file: " + best.path + "`."
        ((_, answer_text),) = answer.render(name=best.name, path=best.path, files=files)
        values = {"spec": self.spec.text, "answer": answer_text}
        if feedback:
            values["tried"] = _tried(feedback)
        messages = [Message(role, redact(content)) for role, content in prompt.render(**values)]
        return messages, f"{prompt.label}+{answer.label}"

    def _take(self, reply: Reply, label: str) -> tuple[str, str]:
        try:
            parsed = parse_reply(
                reply.text,
                finish_reason=reply.finish_reason,
                paths=self.allowed,
                known="\n".join(self.originals[path] for path in self.allowed),
            )
            changed = changed_files(parsed, self.spec.targets, self.originals, self.allowed)
        except ModelReplyUnusable as error:
            self.feedback.append(Feedback("", message=str(error)))
            self.notes.append(f"{reply.model}: {error}")
            return f"unusable: {error}", ""
        if not changed:
            self.feedback.append(Feedback("", message="the reply is the code as it was, nothing was changed"))
            return "unchanged", ""
        candidate = Candidate(
            edits_between(self.originals, changed), Origin("model", model=reply.model, prompt=label)
        )
        digest = normalised_hash(changed)
        if _hash_of(tuple((path, self.originals[path]) for path in sorted(changed))) == digest:
            self.feedback.append(Feedback("", message="the reply changes only layout and comments"))
            return "unchanged", digest
        if digest in self.seen or not self.source.is_new(self.task, digest):
            return "repeated", digest
        self.candidates.append(candidate)
        return "proposed", digest


@lru_cache(maxsize=16)
def _hash_of(originals: tuple[tuple[str, str], ...]) -> str:
    return normalised_hash(dict(originals))


def _spread(samples: int) -> tuple[float, ...]:
    return tuple(_TEMPERATURES[min(number, len(_TEMPERATURES) - 1)] for number in range(max(1, samples)))


def _tried(feedback: Sequence[Feedback]) -> str:
    """The best candidate so far in full, the others in a line each, then what was wrong with replies."""
    tried = [each for each in feedback if each.candidate_diff]
    unusable = [each for each in feedback if not each.candidate_diff]
    texts: list[str] = []
    if tried:
        best = max(range(len(tried)), key=lambda n: (len(tried[n].passed), n))
        chosen = tried[best]
        texts.append(
            "This change was run, and it is not right yet:\n\n" + fence(chosen.candidate_diff, "diff")
        )
        happened = f"{chosen.failed or 'a test'} still fails: {shorten(chosen.message, 1500)}"
        texts.append("What happened:\n\n" + fence(happened))
        if chosen.passed:
            names = "\n".join(chosen.passed[:20])
            texts.append("With it these tests pass, and they must stay passing:\n\n" + fence(names))
        others = [each for number, each in enumerate(tried) if number != best][-_OLD_ATTEMPTS:]
        if others:
            lines = "\n".join(f"{each.failed}: {shorten(each.message, 200)}" for each in others)
            texts.append("Other changes were run and failed, too:\n\n" + fence(lines))
    if unusable:
        # Reasons quote the model's own reply and lines of the project: data, too.
        reasons = "\n".join(dict.fromkeys(shorten(each.message, 600) for each in unusable[-_OLD_ATTEMPTS:]))
        texts.append("Answers that could not be used, and why:\n\n" + fence(reasons))
    return "\n\n".join(texts)
