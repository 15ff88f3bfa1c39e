"""What each operator does to real text: before and after, once for each; everything it makes compiles."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from pytest_autofix.candidates.search.enumerate import enumerate_candidates
from pytest_autofix.candidates.search.facts import Facts
from pytest_autofix.candidates.search.registry import Operator, builtin_operators, operator
from pytest_autofix.candidates.search.site import Replacement, Site
from pytest_autofix.candidates.search.source import MODULE, quiet_compile
from pytest_autofix.tasks.task import Target, Task

OPERATORS = {one.name: one for one in builtin_operators()}


def targets_of(text: str, path: str) -> tuple[Target, ...]:
    """Every function of the text, and the module itself."""
    found = [Target(path, MODULE, 1, text.count("\n") + 1, 0.1)]

    def visit(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                found.append(Target(path, prefix + child.name, child.lineno, child.end_lineno or 0, 1.0))
            elif isinstance(child, ast.ClassDef):
                visit(child, f"{prefix}{child.name}.")

    visit(ast.parse(text), "")
    return tuple(found)


def results(
    name: str, before: str, facts: Facts | None = None, others: dict[str, str] | None = None
) -> set[str]:
    """All texts that one operator makes of a file."""
    originals = {"m.py": before, **(others or {})}
    task = Task("0", (), targets_of(before, "m.py"), ("m.py",))
    candidates = enumerate_candidates(task, originals, facts=facts or Facts(), operators=[OPERATORS[name]])
    texts = {candidate.apply(originals)["m.py"] for candidate in candidates}
    for text in texts:
        assert quiet_compile(text) is not None, text
    return texts


def f(body: str, head: str = "def f(a, b, c):") -> str:
    lines = body.split("\n")
    return head + "\n" + "".join(f"    {line}\n" for line in lines)


def case(
    name: str, template: str, facts: Facts | None = None, others: dict[str, str] | None = None
) -> object:
    """`«old|new»` in the template is `old` before and `new` after."""
    before = re.sub(r"«(.*?)\|.*?»", r"\1", template, flags=re.DOTALL)
    after = re.sub(r"«.*?\|(.*?)»", r"\1", template, flags=re.DOTALL)
    number = len([other for other in CASES if other.id.startswith(name)])  # type: ignore[attr-defined]
    return pytest.param(name, before, after, facts, others, id=f"{name}-{number}")


CASES: list[object] = []


def add(name: str, *templates: str, facts: Facts | None = None, others: dict[str, str] | None = None) -> None:
    CASES.extend(case(name, template, facts, others) for template in templates)


CRASH = frozenset({("m.py", 2)})

add(
    "argument.swap",
    f("return g(«a|b», «b|a», 1)"),
    f("a = g(x=1, *a)\nreturn g(«a.x|b[1]»,  # why\n  «b[1]|a.x»)"),
)
add("argument.drop", f("return g(a«, b|»)"), f("return g(«a, |»key=b)"), f("return g(a«, key=b|»)"))
add(
    "argument.add", "def g(a, b=1):\n    return a\n\n" + f("return g(a«|, b»)"), f("return a.get(b«|, None»)")
)
add(
    "argument.missing",
    "def g(a, b):\n    return a\n\n" + f("return g(a«|, b»)"),
    facts=Facts(missing_arguments={"g": ("b",)}),
)
add(
    "argument.unexpected_keyword",
    "def g(colour):\n    return 1\n\n" + f("return g(«color|colour»=a)"),
    "def g(colour):\n    return 1\n\n" + f("return g(«color=|»a)"),
    facts=Facts(unexpected_keywords={"color": "g"}),
)
add("argument.to_keyword", "def g(a, b=1, *, key=2):\n    return a\n\n" + f("return g(a, «|key=»b)"))
add("argument.flag", f("return sorted(a«|, reverse=True»)"), f("return max(a«|, default=0»)"))
add("argument.range", f("return range(«a|1, a + 1»)"), f("return range(«a, b|a, b, -1»)"))
add(
    "arithmetic.operator",
    f("return a «+|-» b"),
    f("return (a «/|//» b)  # half"),
    f("return c * («a + b|a * b»)"),
    f("return a «+|-» b * c"),
)
add("arithmetic.augmented", f("a «+=|-=» b\nreturn a"), f("a «+=|=» b\nreturn a"))
add("arithmetic.accumulate", f("for x in c:\n    a «=|+=» b\nreturn a"))
add("arithmetic.swap", f("return «a|b» - «b|a»"), f("return «a|b - c» - («b - c|a»)"))
add("arithmetic.drop", f("return «a * (b + 1)|a»"), f("return a ** («b + c|b»)"))
add("arithmetic.sign", f("return «-a|a»"), f("return «a|-a»"), f("return«-a| a»"))
add(
    "arithmetic.off_by_one",
    f("return range(«a|a + 1»)"),
    f("return b * «a|(a - 1)»"),
    f("return b[«a|a - 1»:c]"),
)
add("arithmetic.extend", f("return «a|a + b»"), f("return a[«b|b - c»]"))
add("arithmetic.regroup", f("return «a + b / c|(a + b) / c»"), f("return «a - (b - c)|a - b - c»"))
add("arithmetic.rounding", f("return «a // b|-(-a // b)»"), f("return «int(a / b)|a // b»"))
add("arithmetic.combine", f("return «a|a * 2»"))
add("boolean.connector", f("if «a and b|a or b»:\n    return c"), f("return «a or b or c|(a or b) and c»"))
add(
    "boolean.negate",
    f("if «a|not a»:\n    return b"),
    f("while «not a|a»:\n    return b"),
    f("if a and «b|not b»:\n    return c"),
)
add("boolean.drop", f("if «a and (b or c)|a»:\n    return 1"), f("if «a and (b or c)|b or c»:\n    return 1"))
add("boolean.order", f("while «a[b]|b < c» and «b < c|a[b]»:\n    b += 1"))
add("boolean.regroup", f("return «a or b and c|(a or b) and c»"), f("return «not a and b|not (a and b)»"))
add("boolean.constant", f("if «a > b|True»:\n    return c"), f("while «True|a»:\n    return c"))
add("boolean.branches", f("return «a|b» if c else «b|a»"))
add("call.confusable", f("return «min|max»(a, b)"), f("a.«append|extend»(b)"), f("a.«append(|insert(0, »b)"))
add("call.reference", f("return map(«int|float», a)"))
add("call.same_shape", "def g(a):\n    return 1\n\n\ndef h(a):\n    return 2\n\n\n" + f("return «g|h»(a)"))
add("call.unwrap", f("return «list(a)|a» + b"), f("return «a.strip()|a»"))
add("call.missing", f("return «a.strip|a.strip()»"))
add("call.extra", f("return «a.size()|a.size»"))
add("call.receiver", f("return «a|b».issubset(«b|a»)"))
add(
    "call.await",
    f("return «a.get()|await a.get()»", "async def f(a):"),
    f("return «await a|a»", "async def f(a):"),
)
add("call.quantifier", f("return all(«x > 1|not x > 1» for x in a)"), f("return «any(a)|not any(a)»"))
add(
    "compare.relation",
    f("return a «<|<=» b"),
    f("return a«==|!=»b"),
    f("return a «in|not in» b"),
    f("return (a) «is  not|is» None"),
    f("return (a  # (is\n        «<|>=» b)"),
)
add("compare.swap", f("return «a|b» in «b|a»"))
add("compare.shorten", f("return a < b« < c|»"), f("return «a < |»b < c"))
add("compare.none", f("if «a|a is not None»:\n    return b"), f("if «a is None|not a»:\n    return b"))
add("compare.truth", f("if «a > 1|a»:\n    return b"))
add("compare.completed", f("while «a|a > 0»:\n    a -= 1"), f("if «a|a == b»:\n    return c"))
add("compare.isinstance", f("return «type(a) == int|isinstance(a, int)»"))
add(
    "condition.strengthen", f("if «a|a and b»:\n    return c"), f("if «a < b|a < b and not c»:\n    return c")
)
add("condition.weaken", f("if «a|a or b»:\n    return c"), f("if «a < b|c is None or a < b»:\n    return c"))
add("condition.filter", f("return [x for x in a« if x > 0|»]"), f("return [x for x in a«| if x»]"))
add("constant.step", f("return a[«1|2»]"), f("return a[«1|0»]"), f("return a[«1|2»], b[«1|2»]"))
add("constant.common", f("return «True|False»"), f('a = «0|float("inf")»\nreturn a'), f("return «-1|0»"))
add("constant.text", f("return «'Name '|'Name'»"), f('return «"name"|"Name"»'))
add("constant.near", f('b = "colour"\nreturn a[«"color"|"colour"»]'))
add("constant.donor", f('b = "x"\nreturn «"y"|"x"»'), f("a = 7\nreturn «3|7»"))
add("constant.variable", f("return range(«10|a»)"))
add("constant.tests", f("return «3|12»"), facts=Facts(values=(12, "x")))
add("constant.collection", f("return «[]|[[]]»"), f("return «{}|set()»"), f("return [a«, b|», c]"))
add(
    "crash.none",
    "def f(a):\n«|    if a is None:\n        return None\n»    return a.x\n",
    f("if «a.x > b|a is None or a.x > b»:\n    return c"),
    facts=Facts(raised=frozenset({"AttributeError"}), attributes={"x": "NoneType"}, crash_lines=CRASH),
)
add(
    "crash.position",
    f("while «a[b] > 1|b < len(a) and a[b] > 1»:\n    b += 1"),
    facts=Facts(raised=frozenset({"IndexError"}), crash_lines=CRASH),
)
add(
    "crash.pop",
    "def f(a):\n    while «True|a»:\n        a.pop()\n",
    facts=Facts(raised=frozenset({"IndexError"}), crash_lines=frozenset({("m.py", 3)})),
)
add(
    "crash.key",
    "def f(a, b):\n«|    if b not in a:\n        a[b] = 0\n»    a[b] += 1\n",
    facts=Facts(raised=frozenset({"KeyError"}), crash_lines=CRASH),
)
add(
    "crash.zero",
    f("return «a / b|a / b if b else 0»"),
    "def f(a, b):\n«|    if b == 0:\n        return 0\n»    return a / b\n",
    facts=Facts(raised=frozenset({"ZeroDivisionError"}), crash_lines=CRASH),
)
add(
    "crash.unpack",
    "def f(a):\n«|    if not a:\n        return 0\n»    b, *c = a\n    return b\n",
    facts=Facts(raised=frozenset({"ValueError"}), crash_lines=CRASH),
)
add(
    "crash.recursion",
    "def f(n, m):\n    return f(«n|n - 1», m)\n",
    "def f(n, m):\n    return f(n, «m|m[1:]»)\n",
    facts=Facts(raised=frozenset({"RecursionError"})),
)
add("donor.expression", f("a = b.get(c)\nreturn «a|b.get(c)»"))
add("donor.statement", f("a.append(b)\nfor x in c:\n    b = x\n«|a.append(b)\n»return a"))
add("donor.replace", f("a += b\n«b += 1|a += b»\nreturn a"))
add("insert.assignment", f("for x in a:\n    c = x\n«|    b = c\n»return b"))
add("insert.increment", f("while a:\n    b = a\n«|    a -= 1\n»return a"))
add(
    "insert.collection",
    f("seen = set()\nfor x in a:\n    if x in seen:\n        return x\n«|    seen.add(x)\n»return None"),
)
add("exception.raised", f("raise «ValueError|TypeError»(a)"))
add(
    "exception.caught",
    f("try:\n    return a()\nexcept «ValueError|KeyError»:\n    return b"),
    f("try:\n    return a()\nexcept «ValueError|(ValueError, KeyError)»:\n    return b"),
    facts=Facts(raised=frozenset({"KeyError"})),
)
add("exception.handler", f("try:\n    return a()\nexcept ValueError:\n    «return b|raise»"))
add("exception.not_raised", f("«|raise »ValueError(a)"), f("«return |raise »ValueError(a)"))
add(
    "exception.instead",
    f("if a:\n    «return b|raise KeyError»\nreturn c"),
    facts=Facts(expected_exceptions=("KeyError",)),
)
add("exception.deleted", f("if a:\n    «raise ValueError(b)|return None»\nreturn c"))
add(
    "function.mutable_default",
    "def f(a, b=«[]|None»):\n    '''Doc.'''\n«|    if b is None:\n        b = []\n»    return b\n",
)
add("function.late_binding", f("return [«lambda|lambda x=x»: x for x in a]"))
add(
    "function.parent_constructor",
    "class A(B):\n    def __init__(self, a):\n«|        super().__init__()\n»        self.a = a\n",
)
add(
    "function.decorator",
    "class A:\n«|    @property\n»    def size(self):\n        return 1\n",
    facts=Facts(functions_compared=True),
)
add("function.async_block", f("«|async »for x in a:\n    return x", "async def f(a):"))
add(
    "guard.base_case",
    "def f(a):\n    '''Doc.'''\n«|    if not a:\n        return 0\n»    return a[0] + f(a[1:])\n",
)
add(
    "guard.raise",
    'def f(a):\n«|    if a < 0:\n        raise ValueError("a < 0")\n»    return a\n',
    facts=Facts(expected_exceptions=("ValueError",)),
)
add(
    "guard.loop",
    "def f(a, b):\n    for x in a:\n«|        if b == x:\n            continue\n»        print(x)\n",
)
add("guard.wrap", "def f(a, b):\n«    b.x = a\n|    if a:\n        b.x = a\n»    return b\n")
add("guard.before", "def f(a, b):\n    a = b\n«|    if a is None:\n        return None\n»    return a + b\n")
add("guard.default", f("return «a|a or []»"), f("return «a / b|a / b if b else 0»"))
add(
    "guard.try",
    "def f(a, b):\n«    return a[b]\n|    try:\n        return a[b]\n    except KeyError:\n        return None\n»",
    facts=Facts(raised=frozenset({"KeyError"}), crash_lines=CRASH),
)
add(
    "import.missing",
    '"""Doc."""\nfrom __future__ import annotations\n«|import math\n»\n' + f("return math.pi"),
    facts=Facts(undefined=frozenset({"math"})),
)
add(
    "import.missing",
    "«|from collections import deque\n»" + f("return deque()"),
    facts=Facts(undefined=frozenset({"deque"})),
)
add(
    "import.missing",
    "«|from pkg.g import helper\n»" + f("return helper()"),
    facts=Facts(undefined=frozenset({"helper"})),
    others={"src/pkg/g.py": "def helper():\n    return 1\n"},
)
add(
    "import.qualified",
    "import math\n\n\n" + f("return «sqrt|math.sqrt»(a)"),
    facts=Facts(undefined=frozenset({"sqrt"})),
)
add(
    "import.did_you_mean",
    "from g import «halper|helper as halper»\n",
    facts=Facts(missing_names={"halper": "g"}),
    others={"g.py": "def helper():\n    return 1\n"},
)
add("import.module", "import «maths|math» as m\n", facts=Facts(missing_modules=frozenset({"maths"})))
add("index.position", f("return a[«0|-1»]"), f("return a[«b|-1»]"))
add("index.swap", f("return a[«b|c»][«c|b»]"), f("return a[«b|c», «c|b»]"))
add("index.slice", f("return a[«b:|:b»]"), f("return a[«:|1:»]"), f("return a[«b:c|b:c:-1»]"))
add("index.slice_to_item", f("return a[«b|b:»]"), f("return a«[b:]|[b]»"))
add("index.remove", f("return «a[b]|a»"), f("return «a[b]|b»"))
add("index.add", f("return «a|a[1:]»"), f("return g(«a|a[b]»)"))
add("index.lookup", f("return «a[b]|a.get(b)»"), f("return a.get(b«|, 0»)"))
add("index.wrap_around", f("return a[«b|b % len(a)»]"))
add("loop.iterable", f("for x in «a|list(a)»:\n    a.remove(x)"))
add(
    "loop.enumerate",
    f("for x, y in «a|enumerate(a)»:\n    return y"),
    f("for x, y in «a|a.items()»:\n    return y"),
)
add("loop.element", f("return [«x + 1|x» for x in a]"), f("return «[|{»x for x in a«]|}»"))
add("loop.end_condition", f("b = []\nwhile «c|b and c»:\n    c = b.pop()"))
add("loop.dict", f("return {«k|v»: «v|k» for k, v in a}"))
add(
    "name.did_you_mean", f("lenght = 1\nreturn «length|lenght»"), facts=Facts(undefined=frozenset({"length"}))
)
add("name.undefined", f("return «q|a»"), facts=Facts(undefined=frozenset({"q"})))
add(
    "name.declare",
    "N = 0\n\n\ndef f():\n«|    global N\n»    N += 1\n    return N\n",
    facts=Facts(undefined=frozenset({"N"}), raised=frozenset({"UnboundLocalError"})),
)
add(
    "name.variable",
    f("return «a|b»"),
    f("return [x for x in a if x > «b|x»]"),
    f("c = «a|b»\nreturn «a|b» + c"),
)
add(
    "name.attribute_of_self", "class A:\n    def f(self, x):\n        self.x = 1\n        return «x|self.x»\n"
)
add(
    "name.target",
    f("«a|b» = c\nreturn b"),
    f("«a|b», «b|a» = c\nreturn b"),
    f("«a[b]|c[1]» = c[1]\nreturn a"),
)
add("name.instead", f("return g(«a[0]|b»)"))
add("name.attribute_did_you_mean", f("return a.«lowr|lower»()"), facts=Facts(attributes={"lowr": "str"}))
add("name.attribute", f("b = a.x\nreturn a.«y|x»"))
add("name.attribute_added", f("b = a.x\nreturn «a|a.x»"), f("return «a.x|a»"))
add(
    "return.missing",
    f("«|return »a + b"),
    f("«|a = »a.strip()\nreturn a"),
    f("yield a\n«|yield from »f(b, a, c)"),
)
add("return.assigned", f("«c = |return »a + b"))
add("return.at_end", "def f(a, b):\n    x = a + b\n«|    return x\n»")
add("return.value", f("return «a + b|c»"), f("return«| a»"))
add("return.self", "class A:\n    def f(self, x):\n        return «x|self»\n")
add("return.yield", f("«yield|yield from» a"), f("«yield from|yield» a"), f("«return|yield» a"))
add(
    "return.early",
    "def f(a):\n    for x in a:\n«        return x > 1\n|        if x > 1:\n            return x > 1\n»",
)
add(
    "statement.delete",
    "def f(a):\n«    a += 1  # more\n|»    return a\n",
    f("if a:\n    «a = 1|pass»\nreturn a"),
)
add("statement.unwrap", "def f(a):\n«    if a:\n        a += 1\n|    a += 1\n»    return a\n")
add("statement.swap", "def f(a, b):\n«    a = b\n    b = 1\n|    b = 1\n    a = b\n»    return a\n")
add("statement.move_out", "def f(a):\n    for x in a:\n        b = x\n«        return b\n|    return b\n»")
add(
    "statement.move_in",
    "def f(a, b):\n    for x in a:\n        c = x\n«    b += c\n|        b += c\n»    return b\n",
)
add(
    "statement.jump",
    f("for x in a:\n    if x:\n        «continue|break»"),
    f("for x in a:\n    if x:\n        «return x|continue»"),
)
add("statement.jump_added", f("for x in a:\n    if x:\n        b = x\n«|        break\n»return b"))
add(
    "statement.block",
    f("«if|while» a > b:\n    a -= b\nreturn a"),
    f("«while|if» a > b:\n    a -= b\nreturn a"),
)
add(
    "statement.elif",
    f("if a:\n    b = 1\n«|el»if c:\n    b = 2\nreturn b"),
    f("if a:\n    b = 1\n«elif|if» c:\n    b = 2\nreturn b"),
)
add(
    "statement.else",
    "def f(a, b):\n    if a:\n        b = 1\n«    b = 2\n|    else:\n        b = 2\n»    return b\n",
)
add("wrap.call", f("return «a|len(a)»", "def f(a: list):"), f("return b + «a|str(a)»"))
add("wrap.own_function", "def g(x):\n    return x\n\n\n" + f("return b + «a|g(a)»"))
add("wrap.method", f("return b + «a|a.strip()»"))
add("wrap.bound", f("return «a - b|max(a - b, 0)»"), f("for x in a:\n    b = «x|max(b, x)»\nreturn b"))
add("wrap.concatenate", f("return «a|[b] + a»"))


@pytest.mark.parametrize(("name", "before", "after", "facts", "others"), CASES)
def test_operator(
    name: str, before: str, after: str, facts: Facts | None, others: dict[str, str] | None
) -> None:
    assert before != after
    assert after in results(name, before, facts, others)


def test_every_operator_has_a_case_and_says_what_it_does() -> None:
    assert {case.values[0] for case in CASES} == set(OPERATORS)  # type: ignore[attr-defined]
    for one in OPERATORS.values():
        assert one.summary.endswith((".", ")")) or one.summary.rstrip(",")[-1:].isalpha(), one.name
        assert 0 < one.prior <= 3.0


def test_an_operator_that_needs_facts_is_silent_without_them() -> None:
    for one in OPERATORS.values():
        if one.when is not None:
            assert not one.applies(Facts()), one.name


def test_a_project_can_bring_its_own_operator() -> None:
    def shout(site: Site) -> Iterator[Replacement]:
        """A text that should be louder."""
        if isinstance(site.node.value, str):
            start, end = site.source.span(site.node)
            yield Replacement(((start, end, repr(site.node.value + "!")),))

    own = Operator("own.shout", 1.0, (ast.Constant,), shout)
    task = Task("0", (), targets_of(f("return 'a'"), "m.py"), ("m.py",))
    (candidate,) = enumerate_candidates(task, {"m.py": f("return 'a'")}, operators=[own])
    assert candidate.apply({"m.py": f("return 'a'")}) == {"m.py": f("return 'a!'")}
    assert candidate.origin.operator == "own.shout"


def test_a_name_is_registered_once() -> None:
    with pytest.raises(ValueError, match=r"compare\.relation.*twice"):
        operator("compare.relation", prior=1.0, on=[ast.Compare])(lambda site: iter(()))
