"""Put edited code into live functions, so that a candidate needs no new import. Runs INSIDE: standard library only.

A function's `__code__` may be replaced in place; whoever imported the function by name, wrapped or bound it sees
the new behaviour. That is sound only if nothing but bodies of functions changed: what a module or class body did
when it was executed cannot be done again without a new import. Everything else raises `Unsound`.
"""

from __future__ import annotations

import gc
import inspect
from collections.abc import Iterator, Mapping, Sequence
from types import CodeType, FunctionType

_SHAPE = (
    "co_argcount", "co_posonlyargcount", "co_kwonlyargcount", "co_flags", "co_names", "co_varnames",
    "co_freevars", "co_cellvars", "co_code", "co_exceptiontable",
)  # fmt: skip


class Unsound(Exception):
    """The edit cannot be tried in a live process; a run that imports the edited file can."""


class FunctionIndex:
    """The live functions of chosen files, by file, qualified name and first line."""

    def __init__(self, files: Mapping[str, str]) -> None:
        """`files`: absolute path, as in `co_filename` → relative path."""
        self.absolute = {relative: absolute for absolute, relative in files.items()}
        self.modules: dict[str, CodeType] = {}  # relative path → compiled original, filled on demand
        self._functions: dict[tuple[str, str, int], list[FunctionType]] = {}
        for candidate in gc.get_objects():
            if type(candidate) is FunctionType and candidate.__code__.co_filename in files:
                self._functions.setdefault(_key(candidate.__code__), []).append(candidate)

    def live(self, code: CodeType) -> list[FunctionType]:
        """Functions that run `code`, which was compiled from the original text."""
        return self._functions.get(_key(code), [])

    def functions(self) -> list[FunctionType]:
        """All of them that have a name of their own: no lambda, no comprehension."""
        return [
            function
            for functions in self._functions.values()
            for function in functions
            if not function.__code__.co_name.startswith("<")
        ]

    def named(self, qualname: str) -> FunctionType | None:
        """The live function of a qualified name, None if there is none or more than one file has it."""
        found = [functions for (_, name, _), functions in self._functions.items() if name == qualname]
        return found[0][0] if len(found) == 1 else None

    def imported(self, relative: str) -> bool:
        """Whether the file has any live function, that is: was imported from where the edit would go."""
        return any(filename == self.absolute[relative] for filename, _, _ in self._functions)


def _key(code: CodeType) -> tuple[str, str, int]:
    return code.co_filename, code.co_qualname, code.co_firstlineno


def transplant(index: FunctionIndex, originals: Mapping[str, str], edits: Sequence[Sequence[object]]) -> None:
    """Apply `edits` ([path, start, end, text], offsets in characters) to the live functions of this process.

    Raises `SyntaxError` if an edited file does not compile, `Unsound` if a new import is needed. After either the
    process is in an undefined state: call it in a fork.
    """
    changed: dict[str, list[Sequence[object]]] = {}
    for edit in edits:
        changed.setdefault(str(edit[0]), []).append(edit)
    for path, own in changed.items():
        if path not in originals:
            raise Unsound(f"{path} is a new file")
        old = index.modules.get(path)
        if old is None:
            old = index.modules[path] = compile(
                originals[path], index.absolute[path], "exec", dont_inherit=True
            )
        if not index.imported(path):
            raise Unsound(f"{path} is not imported")
        text = originals[path]
        for _, start, end, replacement in sorted(own, key=lambda edit: -int(str(edit[1]))):
            text = text[: int(str(start))] + str(replacement) + text[int(str(end)) :]
        try:
            new = compile(text, index.absolute[path], "exec", dont_inherit=True)
        except (ValueError, RecursionError, MemoryError) as error:
            raise SyntaxError(str(error)) from error
        _replace_in_body(index, old, new)


def _replace_in_body(index: FunctionIndex, old: CodeType, new: CodeType) -> None:
    """`old` and `new` are bodies that were executed once: of a module or a class. Only functions may differ."""
    if not _same_shape(old, new) or len(old.co_consts) != len(new.co_consts):
        raise Unsound(f"the body of {old.co_name} changed")
    for before, after in zip(old.co_consts, new.co_consts, strict=True):
        if isinstance(before, CodeType) and isinstance(after, CodeType):
            if before.co_flags & inspect.CO_OPTIMIZED:
                if not _equal(before, after):
                    _replace_function(index, before, after)
            else:
                _replace_in_body(index, before, after)
        elif not _same_constant(before, after):
            raise Unsound(f"a constant in the body of {old.co_name} changed")


def _replace_function(index: FunctionIndex, old: CodeType, new: CodeType) -> None:
    functions = index.live(old)
    if not functions:
        raise Unsound(f"{old.co_qualname} has no live function")
    _assign(functions, old, new)
    _replace_nested(index, old, new)


def _replace_nested(index: FunctionIndex, old: CodeType, new: CodeType) -> None:
    """Inner functions that are alive already (decorators that ran at import) keep code of their own."""
    before, after = list(_codes(old)), list(_codes(new))
    paired = [code.co_name for code in before] == [code.co_name for code in after]
    for position, inner in enumerate(before):
        functions = index.live(inner)
        if functions:
            if not paired:
                raise Unsound(f"inner functions of {old.co_qualname} changed")
            _assign(functions, inner, after[position])
        if paired:
            _replace_nested(index, inner, after[position])


def _assign(functions: Sequence[FunctionType], old: CodeType, new: CodeType) -> None:
    if old.co_freevars != new.co_freevars:
        raise Unsound(f"{old.co_qualname} closes over other variables")
    for function in functions:
        function.__code__ = new


def _codes(code: CodeType) -> Iterator[CodeType]:
    return (constant for constant in code.co_consts if isinstance(constant, CodeType))


def _same_shape(old: CodeType, new: CodeType) -> bool:
    return all(getattr(old, name) == getattr(new, name) for name in _SHAPE)


def _equal(old: CodeType, new: CodeType) -> bool:
    """Equal but for line numbers."""
    if not _same_shape(old, new) or len(old.co_consts) != len(new.co_consts):
        return False
    return all(
        _equal(before, after)
        if isinstance(before, CodeType) and isinstance(after, CodeType)
        else _same_constant(before, after)
        for before, after in zip(old.co_consts, new.co_consts, strict=True)
    )


def _same_constant(before: object, after: object) -> bool:
    """Equal with equal types, to any depth: `1 == True == 1.0` are three constants, `-0.0` is not `0.0`."""
    if type(before) is not type(after):
        return False
    if isinstance(before, tuple) and isinstance(after, tuple):
        return len(before) == len(after) and all(map(_same_constant, before, after))
    if isinstance(before, (float, complex)):
        return repr(before) == repr(after)
    if isinstance(before, frozenset) and isinstance(after, frozenset):
        return {(type(item), item) for item in before} == {(type(item), item) for item in after}
    return before == after
