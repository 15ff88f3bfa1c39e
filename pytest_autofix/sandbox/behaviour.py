"""What a function does on inputs like those that the tests gave it. Runs INSIDE: standard library only.

Calls of the target functions are recorded while the tests run, varied a little, and made again by every candidate
that passes the tests. Two candidates with the same results on all of them behave alike as far as can be seen.
Variation of recorded inputs needs no oracle; it is how mutation-based test generators work (e.g. Pacheco and Ernst,
"Randoop", 2007, in reverse: there the oracle is the program as it is).
"""

from __future__ import annotations

import contextlib
import copy
import pickle
import random
import re
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from types import FrameType, FunctionType
from typing import Any

CALLS = 60  #: recorded, different from each other
CALL_BYTES = 20_000  #: of one, pickled
INPUTS = 200  #: recorded and varied together
CALL_SECONDS = 0.05  #: CPU time of one call
ITEMS = 1000  #: taken from an iterator
TEXT = 2000  #: characters of a result

Call = tuple[str, bytes]
"""qualified name of the function, pickled (arguments, keyword arguments)"""

_ADDRESS = re.compile(r"0x[0-9a-f]{4,}")


class OutOfTime(BaseException):
    """Raised by a timer in the middle of a call."""


class CallRecorder:
    """Records calls of chosen functions that come from outside the files under repair."""

    def __init__(
        self, functions: Iterable[FunctionType], files: Iterable[str], tell: Callable[[Call], None]
    ) -> None:
        """`files`: absolute paths of the editable files; a call between them is an inner step, no input.

        `tell` gets each call at once: the one that never returns counts, too.
        """
        self._codes = {function.__code__ for function in functions}
        self._files = frozenset(files)
        self._seen: set[Call] = set()
        self._tell = tell

    def __enter__(self) -> CallRecorder:
        sys.setprofile(self._profile)
        return self

    def __exit__(self, *error: object) -> None:
        sys.setprofile(None)

    def _profile(self, frame: FrameType, event: str, argument: object) -> None:
        if event != "call" or frame.f_code not in self._codes or len(self._seen) >= CALLS:
            return
        caller = frame.f_back
        if caller is not None and caller.f_code.co_filename in self._files:
            return
        sys.setprofile(None)  # pickling runs code of the project
        try:
            with contextlib.suppress(Exception):  # what cannot be pickled cannot be repeated
                call = (frame.f_code.co_qualname, pickle.dumps(_arguments(frame)))
                if len(call[1]) <= CALL_BYTES and call not in self._seen:
                    self._seen.add(call)
                    self._tell(call)
        finally:
            sys.setprofile(self._profile)


def _arguments(frame: FrameType) -> tuple[tuple[Any, ...], dict[str, Any]]:
    code, values = frame.f_code, frame.f_locals
    positional = code.co_varnames[: code.co_argcount]
    named = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    after = code.co_argcount + code.co_kwonlyargcount
    arguments = tuple(values[name] for name in positional)
    keywords = {name: values[name] for name in named}
    if code.co_flags & 0x04:  # *args
        arguments += tuple(values[code.co_varnames[after]])
        after += 1
    if code.co_flags & 0x08:  # **kwargs
        keywords |= values[code.co_varnames[after]]
    return arguments, keywords


def observe(
    calls: Sequence[Call], find: Callable[[str], FunctionType | None], seed: int = 0
) -> Iterator[str]:
    """What each of the recorded and varied calls gives: a text that is equal for equal behaviour.

    `find`: the live function of a qualified name. Deterministic for equal `calls` and `seed`. Meant to be run in a
    fork with a limit of its own: a call that cannot be interrupted ends the process.
    """
    generator = random.Random(seed)  # noqa: S311 - variation, no secret
    signal.signal(signal.SIGVTALRM, _interrupt)
    for name, data in _varied(calls, generator):
        function = find(name)
        yield "unknown" if function is None else _outcome(function, *pickle.loads(data))  # noqa: S301 - our own pickle


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise OutOfTime


def _varied(calls: Sequence[Call], generator: random.Random) -> Iterator[Call]:
    """The calls themselves, then variations of them in turn, none twice."""
    seen = set(calls)
    yield from calls
    for _ in range(20 * INPUTS):
        if len(seen) >= INPUTS or not calls:
            return
        name, data = calls[generator.randrange(len(calls))]
        try:
            arguments, keywords = pickle.loads(data)  # noqa: S301 - our own pickle
            changed = list(arguments)
            for _ in range(generator.choice((1, 1, 2))):
                places = [place for place, value in enumerate(changed) if _can_vary(value)]
                if not places:
                    break
                place = generator.choice(places)
                changed[place] = _vary(changed[place], generator)
            call = (name, pickle.dumps((tuple(changed), keywords)))
        except Exception:  # noqa: S112 - an object of the project that does not like to be varied
            continue
        if call not in seen:
            seen.add(call)
            yield call


def _can_vary(value: object) -> bool:
    return isinstance(value, (bool, int, float, str, bytes, list, tuple, dict, set)) or value is None


def _vary(value: Any, generator: random.Random) -> Any:
    """A value of the same type close to this one."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return generator.choice((value + 1, value - 1, value * 2, value // 2, 0, 1, abs(value), value + 7))
    if isinstance(value, float):
        return generator.choice((value + 1, value - 1, value * 2, value / 2, -value, 0.0))
    if isinstance(value, (str, bytes)):
        items = [value[index : index + 1] for index in range(len(value))]
        return value[:0].join(_vary_items(items, generator))
    if isinstance(value, list):
        return _vary_items(value, generator)
    if isinstance(value, tuple):
        return tuple(_vary_items(list(value), generator))
    if isinstance(value, set):
        return set(_vary_items(sorted(value, key=repr), generator))
    if isinstance(value, dict):
        pairs = list(value.items())
        if pairs and generator.random() < 0.5:
            key, held = generator.choice(pairs)
            return {**value, key: _vary(held, generator) if _can_vary(held) else held}
        return dict(_vary_items(pairs, generator, inner=False))
    return value


def _vary_items(items: list[Any], generator: random.Random, *, inner: bool = True) -> list[Any]:
    items = copy.copy(items)
    kind = generator.choice(("drop", "double", "swap", "reverse", "half", "inner", "inner", "sort"))
    if not items:
        return items
    place, other = generator.randrange(len(items)), generator.randrange(len(items))
    if kind == "drop":
        del items[place]
    elif kind == "double":
        items.insert(other, copy.copy(items[place]))
    elif kind == "swap":
        items[place], items[other] = items[other], items[place]
    elif kind == "reverse":
        items.reverse()
    elif kind == "half":
        del items[len(items) // 2 :]
    elif kind == "sort":
        with contextlib.suppress(TypeError):
            items.sort()
    elif inner and _can_vary(items[place]) and not isinstance(items[place], (str, bytes)):
        items[place] = _vary(items[place], generator)
    elif inner:
        items[place] = items[other]
    return items


def _outcome(function: FunctionType, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> str:
    signal.setitimer(signal.ITIMER_VIRTUAL, CALL_SECONDS)
    try:
        result = function(*arguments, **keywords)
        if isinstance(result, Iterator):
            result = ["iterator", *islice(result, ITEMS)]
        # Results and what became of the arguments: a sort in place returns nothing.
        return _text((result, arguments, keywords))
    except OutOfTime:
        return "timeout"
    except Exception as error:  # whatever the code under test raises is its behaviour
        return f"raises {type(error).__name__}"
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def _text(value: object) -> str:
    return _ADDRESS.sub("0x", repr(value))[:TEXT]
