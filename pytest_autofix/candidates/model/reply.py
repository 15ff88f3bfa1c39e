"""From the text of a reply to code that can be spliced: what models really write, small ones included.

Accepted: prose around, several fences (the last version of a definition counts), wrong language tags, fences left
open, indented fences, no fence at all, thinking sections, search/replace blocks. Refused with a reason that can be
fed back: nothing but prose, code that does not parse, code with parts left out, a reply that was cut off.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from dataclasses import dataclass
from textwrap import dedent
from typing import TYPE_CHECKING

from pytest_autofix.errors import ModelReplyUnusable
from pytest_autofix.patching.blocks import Block

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

__all__ = ["ParsedReply", "ReplyCode", "parse_reply"]

_LONGEST = 400_000  #: characters; more is a model that repeats itself
_THINKING = re.compile(r"<(think|thinking|reasoning)>.*?</\1>", re.DOTALL | re.IGNORECASE)
_OPEN_THINKING = re.compile(r"\A\s*<(think|thinking|reasoning)>(?!.*</\1>)", re.DOTALL | re.IGNORECASE)
_FENCE = re.compile(r"^(?P<indent>[ \t]*)(?P<mark>`{3,}|~{3,})[ \t]*(?P<info>[^`\n]*)$")
_SEARCH = re.compile(r"^\s*<{5,9} ?SEARCH\b.*$")
_DIVIDER = re.compile(r"^\s*={5,9}\s*$")
_REPLACE = re.compile(r"^\s*>{5,9} ?REPLACE\b.*$")
_START = re.compile(r"^[ \t]*(?:@\w|async def |def |class |import |from \w)")
_ELISION = re.compile(
    r"""
    ^\W*(?:\.{3}|…)\W*$                                                        # "# ..."
  | (?:\.{3}|…)\s*\(?\s*(?:the\s+)?(?:rest|other|existing|remaining|same|previous|unchanged|more)\b
  | \b(?:rest|remainder)\s+of\s+(?:the\s+|your\s+)?(?:\w+\s+){0,2}?
      (?:code|function|method|class|implementation|file|body|logic)\b
  | \b(?:existing|previous|original|remaining|other)\s+(?:code|methods?|functions?|implementation|logic)\b
      .{0,20}(?:here|unchanged|(?:remains?|stays?)\b|goes|\.{3}|…|$)
  | \b(?:remains?|stays?|is|are|left)\s+(?:the\s+same|unchanged)\b
  | \b(?:same|unchanged)\s+as\s+(?:before|above|original)
  | \byour\s+(?:code|implementation|logic)\s+(?:goes\s+)?here\b
  | \b(?:implement(?:ation)?|code|logic)\s+(?:goes\s+)?here\b
    """,
    re.VERBOSE | re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class ReplyCode:
    """One piece of code with at least one definition."""

    code: str
    names: tuple[str, ...]  #: of the functions and classes at its top level
    path: str = ""  #: the file it is for, if the reply says so


@dataclass(frozen=True, slots=True)
class ParsedReply:
    """What a reply asks to change. One of the two is empty."""

    codes: tuple[ReplyCode, ...] = ()  #: in the order of the reply; of equal names the last one counts
    blocks: tuple[Block, ...] = ()


@dataclass(frozen=True, slots=True)
class _Fence:
    info: str
    body: str
    before: str  #: the last line with text before the fence
    closed: bool


def parse_reply(
    text: str, *, finish_reason: str = "", paths: Sequence[str] = (), known: str = ""
) -> ParsedReply:
    """What the reply asks to change; `paths` are the file names it may mention.

    `known` is the text that the model was shown: a comment that stands there is no sign of something left out.
    Raises `ModelReplyUnusable` with a sentence for the model about what to do better.
    """
    if len(text) > _LONGEST:
        raise ModelReplyUnusable(f"the reply has {len(text)} characters: answer with the changed code only")
    body = text.replace("\r\n", "\n").replace("\r", "\n")
    cut = finish_reason == "length"
    if _OPEN_THINKING.match(body):
        raise ModelReplyUnusable(
            "the reply is all thinking and no code" + (", and was cut off" if cut else "")
        )
    body = _THINKING.sub("", body)
    if not body.strip():
        raise ModelReplyUnusable("the reply is empty")
    fences = list(_fences(body.split("\n")))
    blocks = tuple(_blocks(body.split("\n"), paths))
    if blocks:
        if cut:
            raise ModelReplyUnusable(_cut_off())
        _refuse_elisions("\n".join(block.replace for block in blocks), known + _searched(blocks))
        return ParsedReply(blocks=blocks)
    codes, problem = _codes(fences or [_Fence("", _bare_code(body), "", closed=not cut)], paths, cut=cut)
    if not codes:
        raise ModelReplyUnusable(problem or _cut_off() if cut else problem or "the reply holds no code")
    for code in codes:
        _refuse_elisions(code.code, known)
    return ParsedReply(codes=tuple(codes))


def _cut_off() -> str:
    return "the reply was cut off before its end: answer shorter, with nothing but the changed definition"


def _searched(blocks: Iterable[Block]) -> str:
    return "".join("\n" + block.search for block in blocks)


def _fences(lines: Sequence[str]) -> Iterator[_Fence]:
    at = 0
    before = ""
    while at < len(lines):
        opening = _FENCE.match(lines[at])
        if not opening:
            before = lines[at].strip() or before
            at += 1
            continue
        mark = opening["mark"]
        end = next((n for n in range(at + 1, len(lines)) if _closes(lines[n], mark)), None)
        body = lines[at + 1 : end] if end is not None else lines[at + 1 :]
        yield _Fence(opening["info"].strip(), "\n".join(body), before, end is not None)
        at = end + 1 if end is not None else len(lines)
        before = ""


def _closes(line: str, mark: str) -> bool:
    bare = line.strip()
    return len(bare) >= len(mark) and not bare.strip(mark[0])


def _blocks(lines: Sequence[str], paths: Sequence[str]) -> Iterator[Block]:
    at = 0
    path = ""
    while at < len(lines):
        path = _path_in(lines[at], paths) or path
        if not _SEARCH.match(lines[at]):
            at += 1
            continue
        middle = next((n for n in range(at + 1, len(lines)) if _DIVIDER.match(lines[n])), None)
        end = next((n for n in range((middle or at) + 1, len(lines)) if _REPLACE.match(lines[n])), None)
        if middle is None or end is None or middle > end:
            raise ModelReplyUnusable(
                f"the search/replace block in line {at + 1} of the reply has no ======= or no >>>>>>> REPLACE line"
            )
        yield Block("\n".join(lines[at + 1 : middle]), "\n".join(lines[middle + 1 : end]), path)
        at = end + 1


def _codes(fences: Sequence[_Fence], paths: Sequence[str], *, cut: bool) -> tuple[list[ReplyCode], str]:
    codes: list[ReplyCode] = []
    problem = ""
    for fence in fences:
        if cut and not fence.closed:
            problem = _cut_off()
            codes = []  # what was to come is not known: an earlier fence may be the code as it was
            continue
        body = _without_prompts(fence.body)
        try:
            tree = _parse(body)
        except SyntaxError as error:
            if _START.search(body) or re.search(r"^[ \t]*(?:def|class) ", body, re.MULTILINE):
                problem = f"the code in the reply does not parse: line {error.lineno}: {error.msg}"
            continue
        names = tuple(
            node.name
            for node in tree.body
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        )
        if names:
            first = next((line for line in body.split("\n") if line.strip()), "")
            path = _path_in(fence.info, paths) or _path_in(first, paths) or _path_in(fence.before, paths)
            codes.append(ReplyCode(body, names, path))
    return codes, problem


def _parse(code: str) -> ast.Module:
    try:
        return ast.parse(code)
    except IndentationError:
        return ast.parse(dedent(code))  # only asked for names here; splicing dedents with care for strings
    except (ValueError, RecursionError, MemoryError) as error:
        raise SyntaxError(str(error) or type(error).__name__) from error


def _path_in(line: str, paths: Sequence[str]) -> str:
    """The longest of the paths that the line names."""
    found = [path for path in paths if re.search(rf"(?<![\w/.-]){re.escape(path)}(?![\w/])", line)]
    return max(found, key=len, default="")


def _without_prompts(code: str) -> str:
    """Code that was written like a Python session, without its prompts."""
    lines = code.split("\n")
    if not lines or not lines[0].startswith(">>> "):
        return code
    return "\n".join(line[4:] for line in lines if line[:4] in (">>> ", "... "))


def _bare_code(body: str) -> str:
    """The longest parsable run of lines that begins like code, for replies without fences."""
    lines = body.split("\n")
    starts = [n for n, line in enumerate(lines) if _START.match(line)]
    for start in starts[:20]:
        end = len(lines)
        while end > start:
            text = "\n".join(lines[start:end])
            try:
                tree = _parse(text)
            except SyntaxError as error:
                # Straight to the line that cannot be code: one by one would be quadratic in long replies.
                end = min(end - 1, start + max((error.lineno or 1) - 1, 0))
                continue
            if any(
                isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) for node in tree.body
            ):
                return text
            break
    if starts and re.match(r"\s*(def|class|async|@)", lines[starts[0]]):
        return "\n".join(lines[starts[0] :])  # to be told what is wrong with it
    return ""


def _refuse_elisions(code: str, known: str) -> None:
    for comment in _comments(code):
        if comment not in known and _ELISION.search(comment):
            raise ModelReplyUnusable(
                f"the reply leaves code out ({comment!r}): write every definition that you change in full"
            )
    try:
        tree = _parse(code)
    except SyntaxError:
        return
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        dots = [statement for statement in node.body if _is_ellipsis(statement)]
        rest = [statement for statement in node.body if not _is_text(statement) and statement not in dots]
        if dots and rest:
            raise ModelReplyUnusable(
                f"the reply leaves code out (`...` in {node.name}): write every definition that you change in full"
            )


def _is_ellipsis(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and node.value.value is Ellipsis
    )


def _is_text(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _comments(code: str) -> list[str]:
    found: list[str] = []
    try:
        found.extend(
            token.string
            for token in tokenize.generate_tokens(io.StringIO(code).readline)
            if token.type == tokenize.COMMENT
        )
    except (tokenize.TokenError, SyntaxError):
        # Of code that stands in a block the tokenizer sees only a part.
        return found or re.findall(r"^\s*(#.*)$", code, re.MULTILINE)
    return found
