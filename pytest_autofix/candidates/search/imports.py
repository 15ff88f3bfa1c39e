"""Missing and misspelt imports: what a NameError or ImportError names is imported at the top of the file."""

from __future__ import annotations

import ast
import difflib
import sys
from collections.abc import Container, Iterator

from pytest_autofix.candidates.search.registry import operator
from pytest_autofix.candidates.search.scope import ModuleNames
from pytest_autofix.candidates.search.site import Replacement, Site
from pytest_autofix.candidates.search.source import Source

_FROM = {
    "collections": "Counter OrderedDict defaultdict deque namedtuple ChainMap",
    "collections.abc": "Callable Generator Iterable Iterator Mapping MutableMapping Sequence",
    "contextlib": "contextmanager suppress ExitStack closing nullcontext redirect_stdout",
    "copy": "deepcopy",
    "dataclasses": "dataclass field asdict replace",
    "datetime": "datetime date timedelta timezone",
    "decimal": "Decimal ROUND_HALF_UP",
    "enum": "Enum IntEnum Flag auto",
    "fractions": "Fraction",
    "functools": "reduce partial lru_cache cache wraps total_ordering cached_property",
    "heapq": "heappush heappop heapify nlargest nsmallest",
    "io": "StringIO BytesIO",
    "itertools": "chain combinations permutations product groupby accumulate islice count cycle repeat zip_longest "
    "takewhile dropwhile starmap tee pairwise",
    "math": "sqrt ceil floor gcd pi inf isclose log factorial prod comb hypot",
    "bisect": "bisect_left bisect_right insort",
    "operator": "itemgetter attrgetter",
    "pathlib": "Path PurePath",
    "random": "randint choice shuffle",
    "statistics": "mean median stdev",
    "string": "ascii_letters ascii_lowercase digits punctuation Template",
    "textwrap": "dedent indent wrap",
    "time": "sleep perf_counter monotonic",
    "types": "SimpleNamespace MappingProxyType",
    "typing": "Any Optional Union List Dict Set Tuple NamedTuple TypedDict Protocol TypeVar cast",
    "abc": "ABC abstractmethod",
    "uuid": "uuid4",
    "urllib.parse": "urlparse urljoin quote unquote urlencode",
    "unittest": "mock",
}
"""Names of the standard library that are usually imported alone."""
_HOME = {name: module for module, names in _FROM.items() for name in names.split()}
_ALIASES = {
    "np": "numpy",
    "pd": "pandas",
    "plt": "matplotlib.pyplot",
    "dt": "datetime",
    "ET": "xml.etree.ElementTree",
}


def _place(source: Source) -> int:
    """Where a new import goes: behind the docstring, the `__future__` imports and the first block of imports."""
    last: ast.stmt | None = None
    for statement in source.tree.body:
        lone = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant) and last is None
        if not lone and not isinstance(statement, (ast.Import, ast.ImportFrom)):
            break
        last = statement
    if last is None:
        return source.line_start(source.tree.body[0].lineno) if source.tree.body else source.line_start(1)
    return source.line_start((last.end_lineno or last.lineno) + 1)


def _import(site: Site, text: str, weight: float) -> Replacement:
    source = site.source
    place = _place(source)
    if place >= len(source.text) and not source.text.endswith(("\n", "\r")):
        return Replacement(((place, place, source.newline + text),), weight)
    return Replacement(((place, place, text + source.newline),), weight)


def module_name(path: str, files: Container[str]) -> str:
    """Import name of a file below the project: `src/pkg/mod.py` is `pkg.mod`, unless `src` is a package itself."""
    parts = path.removesuffix(".py").split("/")
    if parts[0] in ("src", "lib") and len(parts) > 1 and f"{parts[0]}/__init__.py" not in files:
        parts = parts[1:]
    if parts[-1] == "__init__":
        parts.pop()
    return ".".join(parts)


@operator("import.missing", prior=3.0, on=[ast.Name], when=lambda facts: facts.undefined)
def missing(site: Site) -> Iterator[Replacement]:
    """The name a NameError was about is a module, a well-known name of one, or defined in another file."""
    name = site.node.id
    if name not in site.facts.undefined:
        return
    if name in sys.stdlib_module_names:
        yield _import(site, f"import {name}", 1.0)
    if name in _HOME:
        yield _import(site, f"from {_HOME[name]} import {name}", 1.0)
    if name in _ALIASES:
        yield _import(site, f"import {_ALIASES[name]} as {name}", 1.0)
    for path, text in site.context.originals.items():
        if path == site.source.path or not path.endswith(".py") or name not in text:
            continue
        other = Source.parse(path, text)
        if other is not None and name in ModuleNames.of(other).all - ModuleNames.of(other).imports:
            yield _import(site, f"from {module_name(path, site.context.originals)} import {name}", 0.9)
        elif module_name(path, site.context.originals).rpartition(".")[2] == name:
            yield _import(site, f"import {module_name(path, site.context.originals)}", 0.5)


@operator("import.qualified", prior=1.5, on=[ast.Name], when=lambda facts: facts.undefined)
def qualified(site: Site) -> Iterator[Replacement]:
    """A bare name of a module that is imported as a whole: `sqrt` for `math.sqrt`."""
    name = site.node.id
    home = _HOME.get(name, "")
    if name in site.facts.undefined and home and home in site.context.module.imports:
        start, end = site.source.span(site.node)
        yield Replacement(((start, end, f"{home}.{name}"),))


@operator("import.did_you_mean", prior=3.0, on=[ast.ImportFrom], when=lambda facts: facts.missing_names)
def did_you_mean(site: Site) -> Iterator[Replacement]:
    """A name that a module does not have: one much like it that the module defines; the module it is really in."""
    node = site.node
    for alias in node.names:
        if alias.name not in site.facts.missing_names:
            continue
        start, _ = site.source.span(alias)
        end = start + len(alias.name)
        suffix = "" if alias.asname else f" as {alias.name}"
        for path, text in site.context.originals.items():
            if module_name(path, site.context.originals) != site.facts.missing_names[alias.name]:
                continue
            other = Source.parse(path, text)
            known = sorted(ModuleNames.of(other).all) if other is not None else []
            for found in difflib.get_close_matches(alias.name, known, n=4, cutoff=0.5):
                yield Replacement(((start, end, found + suffix),))
        if alias.name in _HOME and node.module and len(node.names) == 1:
            begin = site.source.text.find(node.module, site.source.span(node)[0])
            yield Replacement(((begin, begin + len(node.module), _HOME[alias.name]),))


@operator(
    "import.module", prior=3.0, on=[ast.Import, ast.ImportFrom], when=lambda facts: facts.missing_modules
)
def module(site: Site) -> Iterator[Replacement]:
    """A module that cannot be found: one much like it of the project or the standard library."""
    node = site.node
    local = [
        module_name(path, site.context.originals) for path in site.context.originals if path.endswith(".py")
    ]
    known = sorted({*local, *(name for name in sys.stdlib_module_names if not name.startswith("_"))})
    names = (
        [(node.module, node)]
        if isinstance(node, ast.ImportFrom)
        else [(alias.name, alias) for alias in node.names]
    )
    for name, place in names:
        if not name or name not in site.facts.missing_modules:
            continue
        start = site.source.text.find(name, site.source.span(place)[0])
        last = name.rpartition(".")[2]
        near = [one for one in local if one.rpartition(".")[2] == last and one != name]
        near += difflib.get_close_matches(name, known, n=3, cutoff=0.6)
        for found in dict.fromkeys(near):
            if start >= 0:
                yield Replacement(((start, start + len(name), found),))
