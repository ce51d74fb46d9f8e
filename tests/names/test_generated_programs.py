"""Programs that differ in what they do differ in name; the same program has one name everywhere.

`prog` refers to `helper`, which refers to `deeper`. A program is a list of pieces: what holds a
value, in which module, and by which kind of import each module reaches the next.
"""

import itertools
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from making import LATE
from suites import examples

MODULES = ("prog", "helper", "deeper")

HEAD = """\
import dataclasses, enum, functools, math, re, types
import numpy as np
"""

# what holds a value v under a name n, and an expression that depends on it
HOLDERS = {
    "constant": ("{n} = {v}", "{n}"),
    "list": ("{n} = [[1], {v}]", "{n}[1]"),
    "order of a dictionary": ("{n} = {{{v}: 0, -1: 0}}", "list({n})[0]"),
    "set": ("{n} = {{'a', 'b', ('c', {v})}}", "sorted(map(str, {n}))"),
    "set of functions": ("{n} = {{lambda: {v}, len}}", "sum(f() for f in {n} - {{len}})"),
    "array": ("{n} = np.arange(3) + {v}", "{n}.tolist()"),
    "objects": ("{n} = np.array([{{'a', 'b', {v}}}, None], object)", "sorted(map(str, {n}[0]))"),
    "function": ("def {n}():\n    return {v}", "{n}()"),
    "default": ("def {n}(a={v}):\n    return a", "{n}()"),
    "keyword default": ("def {n}(*, a={v}):\n    return a", "{n}()"),
    "lambda in a dict in a list": ("{n} = [{{'f': lambda: K{n}}}]\nK{n} = {v}", "{n}[0]['f']()"),
    "closure": ("def make{n}(a):\n    return lambda: a\n{n} = make{n}({v})", "{n}()"),
    "decorated": (
        (
            "def deco{n}(f):\n    @functools.wraps(f)\n    def wrapped():\n"
            "        return f() + {v}\n"
            "    return wrapped\n@deco{n}\ndef {n}():\n    return 1"
        ),
        "{n}()",
    ),
    "cached": ("@functools.lru_cache\ndef {n}():\n    return {v}", "{n}()"),
    "single dispatch": (
        (
            "@functools.singledispatch\ndef {n}(a):\n    return 0\n"
            "@{n}.register\ndef int{n}(a: int):\n    return {v}"
        ),
        "{n}(1)",
    ),
    "partial": ("def part{n}(a):\n    return a\n{n} = functools.partial(part{n}, {v})", "{n}()"),
    "function attribute": ("def {n}():\n    return {n}.a\n{n}.a = {v}", "{n}()"),
    "library function": ("{n} = (math.floor, math.ceil)[{v} % 2]", "{n}(1.5)"),
    "ufunc": ("{n} = (np.add, np.multiply)[{v} % 2]", "int({n}(1, 1))"),
    "class attribute": ("class {n}:\n    a = {v}", "{n}.a"),
    "base": ("class Base{n}:\n    a = {v}\nclass {n}(Base{n}):\n    pass", "{n}.a"),
    "metaclass": (
        (
            "class Meta{n}(type):\n    def get(cls):\n        return {v}\n"
            "class {n}(metaclass=Meta{n}):\n    pass"
        ),
        "{n}.get()",
    ),
    "property": ("class {n}:\n    @property\n    def a(self):\n        return {v}", "{n}().a"),
    "cached property": (
        "class {n}:\n    @functools.cached_property\n    def a(self):\n        return {v}",
        "{n}().a",
    ),
    "static method": ("class {n}:\n    @staticmethod\n    def a():\n        return {v}", "{n}.a()"),
    "class method": (
        "class {n}:\n    @classmethod\n    def a(cls):\n        return {v}",
        "{n}.a()",
    ),
    "descriptor": (
        (
            "class Desc{n}:\n    def __init__(self, a):\n        self.a = a\n"
            "    def __get__(self, *_):\n        return self.a\nclass {n}:\n    a = Desc{n}({v})"
        ),
        "{n}.a",
    ),
    "instance": (
        "class Of{n}:\n    def __init__(self, a):\n        self.a = a\n{n} = Of{n}({v})",
        "{n}.a",
    ),
    "slots": (
        (
            "class Of{n}:\n    __slots__ = ('a',)\n    def __init__(self, a):\n        self.a = a\n"
            "{n} = Of{n}({v})"
        ),
        "{n}.a",
    ),
    "bound method": (
        (
            "class Of{n}:\n    def __init__(self, a):\n        self.a = a\n    def get(self):\n"
            "        return self.a\n{n} = Of{n}({v}).get"
        ),
        "{n}()",
    ),
    "dataclass": (
        "@dataclasses.dataclass\nclass Of{n}:\n    a: int\n{n} = Of{n}({v})",
        "{n}.a",
    ),
    "default of a dataclass": (
        "@dataclasses.dataclass\nclass {n}:\n    a: int = dataclasses.field(default={v})",
        "{n}().a",
    ),
    "namespace": ("{n} = types.SimpleNamespace(a={v})", "{n}.a"),
    "enum": ("class {n}(enum.Enum):\n    A = {v}\n    B = 'b'", "{n}.A.value"),
    "pattern": ("{n} = re.compile('a' * {v})", "{n}.pattern"),
    "random state": ("{n} = np.random.default_rng({v})", "str({n}.bit_generator.state['state'])"),
    "holds itself": ("{n} = [{v}]\n{n}.append({n})", "{n}[0]"),
    "objects in a ring": (
        "{n} = types.SimpleNamespace(a={v})\n{n}.b = types.SimpleNamespace(b={n})",
        "{n}.b.b.a",
    ),
    "shadowed builtin": ("{n} = lambda: hex(1)\ndef hex(x):\n    return {v}", "{n}()"),
}

# how a module reaches a name of the next one: at its top, and in an expression
LINKS = {
    "from": ("from {m} import {n} as other_{n}", "other_{n}"),
    "module": ("import {m}", "{m}.{n}"),
    "module of another name": ("import {m} as as_{n}", "as_{n}.{n}"),
    "star": ("from {m} import *", "{n}"),
    "inside": ("def get_{n}():\n    from {m} import {n}\n    return {n}", "get_{n}()"),
    "module inside": ("def get_{n}():\n    import {m}\n    return {m}.{n}", "get_{n}()"),
    "by text": ("import {m}", "getattr({m}, '{n}')"),
    "default": ("import {m}\ndef get_{n}(f={m}.{n}):\n    return f", "get_{n}()"),
    "method": (
        "import {m}\nclass Get{n}:\n    def get(self):\n        return {m}.{n}",
        "Get{n}().get()",
    ),
    "instance": ("import {m}\nlink_{n} = types.SimpleNamespace(a=[{m}.{n}])", "link_{n}.a[0]"),
}


@dataclass(frozen=True)
class Piece:
    """Something that holds a value, in the module at a depth, and the links that lead there."""

    holder: str
    value: int
    links: tuple[str, ...]
    """One for each module on the way: none if it is in `prog` itself."""
    handed_on: bool
    """Whether modules hand on the object itself, or call a function of the next one."""


def write(folder: Path, pieces: list[Piece]) -> str:
    """Write the modules of a program; return its folder."""
    text = dict.fromkeys(MODULES, HEAD)
    for k, piece in enumerate(pieces):
        name, depth = f"x{k}", len(piece.links)
        holds, uses = HOLDERS[piece.holder]
        text[MODULES[depth]] += holds.format(n=name, v=piece.value) + "\n"
        if not piece.handed_on:
            text[MODULES[depth]] += _use(depth, k, uses.format(n=name))
        for here in reversed(range(depth)):
            target = name if piece.handed_on else f"use{here + 1}_{k}"
            top, expression = LINKS[piece.links[here]]
            reached = expression.format(m=MODULES[here + 1], n=target)
            text[MODULES[here]] += top.format(m=MODULES[here + 1], n=target) + "\n"
            if not piece.handed_on:
                text[MODULES[here]] += _use(here, k, f"{reached}()")
            elif here:
                text[MODULES[here]] += f"{name} = {reached}\n"
            else:
                text["prog"] += _use(0, k, uses.format(n=reached))
        if piece.handed_on and not depth:
            text["prog"] += _use(0, k, uses.format(n=name))
    results = ", ".join(f"use0_{k}()" for k in range(len(pieces)))
    text["prog"] += f"def entry():\n    return [{results}]\n"
    folder.mkdir(parents=True)
    for module, body in text.items():
        (folder / f"{module}.py").write_text(body)
    return str(folder)


def _use(depth: int, k: int, expression: str) -> str:
    """Return the text of a function that uses a piece."""
    return f"def use{depth}_{k}():\n    return {expression}\n"


SERVER = """
import importlib, json, sys
sys.dont_write_bytecode = True
from udfdask.base.names.naming import tokenize_value
for line in sys.stdin:
    answers = []
    for folder in json.loads(line):
        sys.path.insert(0, folder)
        importlib.invalidate_caches()
        prog = importlib.import_module("prog")
        name = tokenize_value(prog.entry)
        again = tokenize_value(prog.entry)
        answers.append([name, again, repr(prog.entry())])
        sys.path.remove(folder)
        for module in ("prog", "helper", "deeper"):
            sys.modules.pop(module, None)
    print(json.dumps(answers), flush=True)
"""


class Namer:
    """An interpreter that imports programs, names them and runs them."""

    def __init__(self, hash_seed: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", SERVER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
        )

    def answers(self, folders: list[str]) -> list[list[str]]:
        """Return two names of each program, and what it returns."""
        self._process.stdin.write(json.dumps(folders) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline() or "null")

    def close(self) -> None:
        """End the interpreter."""
        self._process.stdin.close()
        self._process.wait(LATE)
        self._process.stdout.close()


PIECES = st.builds(
    Piece,
    holder=st.sampled_from(sorted(HOLDERS)),
    value=st.integers(1, 9),
    links=st.lists(st.sampled_from(sorted(LINKS)), max_size=2).map(tuple),
    handed_on=st.booleans(),
)


@pytest.fixture(scope="module")
def namers():
    """Two interpreters in which strings have other hashes."""
    both = Namer("1"), Namer("2")
    yield both
    for namer in both:
        namer.close()


def check(namers, programs):
    """Take pairs of programs, of which the second has been edited."""
    with tempfile.TemporaryDirectory() as folder:
        written = [
            [write(Path(folder) / f"{k}{version}", pieces) for version, pieces in enumerate(pair)]
            for k, pair in enumerate(programs)
        ]
        one, other = namers
        here = one.answers(list(itertools.chain(*written)))
        there = other.answers([second for second, _ in reversed(written)])[::-1]
    for k, (pieces, edited) in enumerate(programs):
        (name, again, result), (edited_name, _, edited_result) = here[2 * k : 2 * k + 2]
        assert name == again, f"two names in one process: {pieces}"
        assert name == there[k][0], f"another name in another process: {pieces}"
        assert result != edited_result, f"the edit changed nothing: {pieces}"
        assert name != edited_name, f"{pieces} and {edited} have one name"


def edit(piece):
    """Return the piece with another value; 1 more, since some holders look at odd and even."""
    return replace(piece, value=piece.value + 1)


def check_pieces(namers, holder, ways):
    """Check a program for each way to a holder, and each use of what it holds."""
    pieces = [
        Piece(holder=holder, value=3, links=links, handed_on=handed_on)
        for links, handed_on in itertools.product(ways, (False, True))
    ]
    check(namers, [([piece], [edit(piece)]) for piece in pieces])


@pytest.mark.full
@pytest.mark.parametrize("holder", HOLDERS)
def test_each_holder(namers, holder):
    check_pieces(namers, holder, [(), ("from",), ("module", "from")])


@pytest.mark.parametrize("link", LINKS)
def test_each_link(namers, link):
    check_pieces(namers, "constant", [(link,), *((link, rest) for rest in LINKS)])


@settings(max_examples=examples(15), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(st.lists(PIECES, min_size=1, max_size=5), st.integers(0)), max_size=6))
def test_any_program(namers, drawn):
    programs = []
    for pieces, where in drawn:
        k = where % len(pieces)
        # two of these in one module would be one
        once = [p for p in pieces[:k] + pieces[k + 1 :] if p.holder != "shadowed builtin"]
        programs.append(([*once, pieces[k]], [*once, edit(pieces[k])]))
    check(namers, programs)
