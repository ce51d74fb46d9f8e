"""Whatever changes what code does, in the process or in a file, changes its name."""

import builtins
import functools
import importlib
import itertools
import math
import random
import re
import sys
import textwrap
import threading
import types
import weakref

import dask.array as da
import numpy as np
import pytest

import udf_zoo
import udfdask as ud
from udfdask.names.naming import tokenize_value
from udfdask.udfs import SumUDF


@pytest.fixture
def load(tmp_path, monkeypatch):
    """Return a function that writes a module of the user's and imports it."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    names = []

    def loaded(name, text):
        file = tmp_path / f"{name}.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text(textwrap.dedent(text))
        importlib.invalidate_caches()
        names.append(name.removesuffix("/__init__").replace("/", "."))
        return importlib.import_module(names[-1])

    yield loaded
    for name in names:
        sys.modules.pop(name, None)


HELPER = """
    import functools, re, types, numpy as np
    LEVEL = 1
    TABLE = [[1, 2], 3]
    RANDOM = np.random.default_rng(1)
    OPTIONS = [{"f": lambda: LEVEL}]
    def f(a=1, *, b=2):
        return a + b + inner()
    def inner():
        return LEVEL
    class Base:
        factor = 1
        def get(self):
            return self.factor
    class Scale(Base):
        def __init__(self, by):
            self.by = by
        @property
        def twice(self):
            return 2 * self.by
    SCALE = Scale(3)
    def decorate(function):
        @functools.wraps(function)
        def wrapper(*args):
            return function(*args) + LEVEL
        return wrapper
"""
# an expression of the module that uses the helper, and what changes what it gives
CHANGES = {
    "a function of a helper module": ("helper.f()", "helper.f = lambda: 0"),
    "a function of a helper's function": ("helper.f()", "helper.inner = lambda: 0"),
    "a constant that it reads": ("helper.f()", "helper.LEVEL = 2"),
    "a positional default": ("helper.f()", "helper.f.__defaults__ = (2,)"),
    "a keyword default": ("helper.f()", "helper.f.__kwdefaults__['b'] = 3"),
    "the code of a function": ("helper.f()", "helper.f.__code__ = (lambda a, b=1: 0).__code__"),
    "an attribute of a function": ("helper.f.__dict__.get('a')", "helper.f.a = 1"),
    "a list inside a list": ("helper.TABLE", "helper.TABLE[0].append(1)"),
    "an attribute of an object": ("helper.SCALE.twice", "helper.SCALE.by = 4"),
    "another attribute": ("vars(helper.SCALE)", "helper.SCALE.more = 4"),
    "an attribute of its class": ("helper.SCALE.get()", "helper.Scale.factor = 2"),
    "an attribute of its base": ("helper.SCALE.get()", "helper.Base.factor = 2"),
    "a method of its base": ("helper.SCALE.get()", "helper.Base.get = lambda self: 0"),
    "a property": ("helper.SCALE.twice", "helper.Scale.twice = property(lambda self: 0)"),
    "its class": ("helper.SCALE.get()", "helper.SCALE.__class__ = type('X', (helper.Base,), {})"),
    "what a lambda in a dictionary in a list reads": (
        "helper.OPTIONS[0]['f']()",
        "helper.LEVEL = 2",
    ),
    "the state of a random generator": ("helper.RANDOM.random()", "helper.RANDOM.random()"),
    "what a decorator reads": ("decorated()", "helper.LEVEL = 2"),
    "a module, by a text": ("getattr(helper, 'LEV' + 'EL')", "helper.LEVEL = 2"),
    "a module, handed on": ("used(helper)", "helper.LEVEL = 2"),
    "a module's dictionary": ("vars(helper)['LEVEL']", "helper.LEVEL = 2"),
    "a global, by a text": ("globals()['COUNT']", "prog.COUNT = 2"),
    "a global that was not there": ("hasattr(helper, 'g') and helper.g()", "helper.g = lambda: 1"),
    "a name that was not there": ("later()", "prog.later = lambda: 1"),
    "a builtin that is shadowed": ("len([1])", "prog.len = lambda x: 0"),
    # functions that no other thread of the process calls meanwhile
    "a builtin that is replaced": (
        "ascii([1])",
        "monkeypatch.setattr(builtins, 'ascii', lambda x: 0)",
    ),
    "a library's function that is replaced": (
        "math.erfc(1.5)",
        "monkeypatch.setattr(math, 'erfc', lambda x: 0)",
    ),
    "a library's constant": ("math.pi", "monkeypatch.setattr(math, 'pi', 3)"),
    "a library's function of another": ("stat([1, 2, 6])", "prog.stat = np.median"),
    "a module in place of another": ("math.floor(1.5)", "prog.math = np"),
    "the same import of another module": ("f()", "prog.f = other.f"),
    "an import inside": ("inside()", "helper.LEVEL = 2"),
    "a name that an import inside takes": ("inside_from()", "helper.LEVEL = 2"),
    "an import inside of a star": ("STARRED()", "prog.STARRED = helper.inner"),
    "what a module makes when it is asked for": ("lazy.anything", "lazy.VALUES['anything'] = 2"),
    "a function of __getattr__": ("lazy.anything", "lazy.__getattr__ = lambda name: 0"),
    "what code that was executed reads": ("executed()", "space['level'] = 2"),
    "an array in place": ("ARRAY.sum()", "prog.ARRAY[0] = 5"),
    "an attribute of a cached function": ("cached.__dict__.get('a')", "prog.cached.a = 1"),
    "the seed of NumPy's functions": ("np.random.rand()", "np.random.seed(5)"),
    "the environment": ("os.environ.get('A')", "monkeypatch.setenv('A', 'b')"),
    "an object array that holds itself": ("LOOP[1]", "prog.LOOP[1] = 2"),
    "a method of a library's class": ("INDEX(ARRAY)", "prog.INDEX = np.ndarray.max"),
    "the package's next module": ("package.main.f()", "package_next.VALUE = 2"),
    "the same, without a relative import": ("package.main.g()", "package_next.VALUE = 2"),
    "a count of calls": ("next(COUNTER)", "next(prog.COUNTER)"),
    "a bound builtin": ("APPEND.__self__", "prog.APPEND(1)"),
}
PROG = """
    import functools, math, os, re
    import numpy as np
    import package.main
    from numpy import mean as stat
    import helper, lazy
    from helper import f, decorate
    from starred import *
    COUNT = 1
    ARRAY = np.arange(3)
    COUNTER = iter([1, 2, 3])
    APPEND = [].append
    INDEX = np.ndarray.argmax
    LOOP = np.array([None, 1], dtype=object)
    LOOP[0] = LOOP
    @functools.lru_cache
    def cached():
        return 1
    @decorate
    def decorated():
        return 1
    def used(module):
        return module.LEVEL
    def inside():
        import helper
        return helper.f()
    def inside_from():
        from helper import inner
        return inner()
    def entry():
        return {}
"""


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_changes_the_name(load, change, monkeypatch):
    uses, does = CHANGES[change]
    helper = load("helper", HELPER)
    lazy = load("lazy", "VALUES = {'anything': 1}\ndef __getattr__(name):\n    return VALUES[name]")
    load("starred", "def STARRED():\n    return 3\n")
    load("package/__init__", "")
    package_next = load("package/next", "VALUE = 1\n")
    inside = "def f():\n    from . import next\n    return next.VALUE\n"
    load("package/main", inside + "def g():\n    import package.next as n\n    return n.VALUE\n")
    other = load("other", "def f():\n    return 5\n")
    prog = load("prog", PROG.format(uses))
    space = {"level": 1}
    exec("def executed():\n    return level", space)
    prog.executed = space["executed"]
    before = tokenize_value(prog.entry)
    assert before == tokenize_value(prog.entry)
    scope = {"prog": prog, "helper": helper, "lazy": lazy, "other": other, "space": space}
    scope["package_next"] = package_next
    exec(does, {**globals(), **scope, "monkeypatch": monkeypatch})
    assert tokenize_value(prog.entry) != before
    assert tokenize_value(prog.entry) == tokenize_value(prog.entry)


def test_a_user_defined_udf_through_its_helper(load):
    """The whole road: names of results follow a function two modules away."""
    load("deeper", "FACTOR = 1\ndef scaled(x):\n    return FACTOR * x\n")
    load(
        "helper",
        "import deeper\ndef total(tile):\n    return deeper.scaled(tile.sum(axis=(1, 2)))\n",
    )
    prog = load(
        "prog",
        """
        import helper, udfdask as ud
        class Total(ud.UDF):
            def get_result_buffers(self):
                return {"total": self.buffer("nav", dtype="f4")}
            def process_tile(self, tile):
                self.results.total[:] += helper.total(tile)
        """,
    )
    x = da.ones((2, 3, 4, 4), chunks=(1, 3, 4, 4))
    one = ud.run_udf(x, prog.Total())["total"]
    sys.modules["deeper"].FACTOR = 3
    other = ud.run_udf(x, prog.Total())["total"]
    assert one.name != other.name
    assert ud.run_udf(x, prog.Total())["total"].name == other.name


def test_a_cell_that_is_run_again_makes_its_shared_data_anew():
    """`get_shared_task_data` is kept per run: another factory is another run."""
    text = """
        import numpy as np, udfdask as ud
        def factory():
            return np.full((4, 4), {value})
        class Masked(ud.UDF):
            def get_shared_task_data(self):
                return {{"mask": make()}}
            def get_result_buffers(self):
                return {{"total": self.buffer("nav", dtype="f8")}}
            def process_frame(self, frame):
                self.results.total[:] = (frame * self.task_data.mask).sum()
    """
    cell = textwrap.dedent(text)
    notebook: dict = {"__name__": "__main__"}
    x, totals = da.ones((1, 2, 4, 4)), []
    for value in (1.0, 2.0):
        exec(cell.format(value=value), notebook)
        notebook["make"] = functools.lru_cache(notebook["factory"])
        totals.append(ud.run_udf(x, notebook["Masked"]())["total"].compute()[0, 0])
    assert totals == [16, 32]


@pytest.mark.parametrize("attribute", ["split_every", "process_tile", "get_results"])
def test_a_ready_made_udf_that_is_patched(attribute, monkeypatch):
    before = tokenize_value(SumUDF)
    monkeypatch.setattr(SumUDF, attribute, lambda self, *_: None, raising=False)
    assert tokenize_value(SumUDF) != before


class Opaque:
    def __reduce__(self):
        raise TypeError("stays here")


def generator():
    yield 1


class MakesAttributes(types.ModuleType):
    @property
    def anything(self):
        return 1


made_module = MakesAttributes("made_module")
UNNAMED = {
    "a generator": generator(),
    "an open file": sys.__stdout__,
    "a ufunc made of a function": np.frompyfunc(lambda a: a, 1, 1),
    "an object that refuses": Opaque(),
    "a weak reference": weakref.ref(udf_zoo.NavSums),
    "a module that makes its attributes": lambda: made_module.anything,
    "thread-local data": threading.local(),
    "very deep": [],
}
deep = UNNAMED["very deep"]
for _ in range(3000):
    deep.append([1, []])
    deep = deep[0][1]


@pytest.mark.parametrize("what", UNNAMED)
def test_what_cannot_be_named_is_never_shared(what):
    thing = UNNAMED[what]
    assert tokenize_value(thing) != tokenize_value(thing)
    assert tokenize_value({"a": [thing]}) != tokenize_value({"a": [thing]})
    assert tokenize_value(lambda: thing) != tokenize_value(lambda: thing)


class RaisesForAnyName:
    """Like HyperSpy's `Events`, which a signal's axes contain."""

    def __init__(self, by):
        self.by = by

    def __getattr__(self, name):
        raise KeyError(name)


def test_objects_that_raise_another_error_for_missing_attributes():
    one, same, other = RaisesForAnyName(1), RaisesForAnyName(1), RaisesForAnyName(2)
    assert tokenize_value(one) == tokenize_value(same) != tokenize_value(other)

    def scaled(by):
        return lambda frame: frame.sum() * by.by

    x = da.ones((2, 3, 4, 4))
    result = ud.map_frames(x, scaled(other))
    np.testing.assert_array_equal(result.compute(), np.full((2, 3), 32))


def test_two_of_one_name_are_told_apart():
    """What is met again is known by its place, not by its name."""

    def make(n):
        def inner():
            return n

        return inner

    one, two = make(1), make(2)
    assert tokenize_value([one, two, one]) != tokenize_value([one, two, two])
    assert tokenize_value([one, two, one]) == tokenize_value([one, two, one])
    first, second = object(), object()
    assert tokenize_value([first, second, first]) != tokenize_value([first, second, second])
    assert tokenize_value([first, second]) == tokenize_value([object(), object()])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (np.arange(4).reshape(2, 2), np.arange(4).reshape(2, 2).T),
        (np.dtype([("a", "i4"), ("b", "i4")]), np.dtype([("b", "i4"), ("a", "i4")])),
        (np.array(["a-b", "c"], object), np.array(["a", "b-c"], object)),
        (np.zeros(2, "M8[s]"), np.zeros(2, "M8[ms]")),
        (np.ma.array([1, 2], mask=[0, 1]), np.ma.array([1, 2], mask=[1, 0])),
        (np.zeros(3, "i4"), np.zeros(3, "u4")),
        (np.zeros(0), np.zeros((0, 1))),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({1: 0, "1": 1}, {"1": 0, 1: 1}),
        ([1, [2]], [[1], 2]),
        ((1, 2), [1, 2]),
        (range(3), slice(3)),
        (slice(1, 2), slice(1, 2, 1)),
        (10**5000, 10**5000 + 1),
        (math.floor, math.ceil),
        (np.add, np.multiply),
        ("a".join, "b".join),
        (str.upper, str.lower),
        (re.compile("a"), re.compile("a", re.IGNORECASE)),
        (random.Random(1), random.Random(2)),
        (np.random.default_rng(1), np.random.default_rng(2)),
        (types.SimpleNamespace(a=1), types.SimpleNamespace(a=2)),
        (itertools.chain([1]), itertools.chain([2])),
        (lambda a, b: 0, lambda a, *, b: 0),
        (lambda a, b: 0, lambda a, b, /: 0),
        (list[int], list[float]),
        (np.vectorize(math.floor), np.vectorize(math.ceil)),
    ],
    ids=lambda v: type(v).__name__,
)
def test_values_that_differ(one, other):
    assert tokenize_value(one) != tokenize_value(other)
    assert tokenize_value(one) == tokenize_value(one)
    assert tokenize_value(builtins.list([one])) != tokenize_value([other])


def test_equal_values_in_other_places():
    """Copies have the name of the original, wherever they lie in memory."""
    table = np.arange(12.0).reshape(3, 4)
    assert tokenize_value(table) == tokenize_value(np.asfortranarray(table))
    assert tokenize_value(table[:, ::2]) == tokenize_value(table[:, ::2].copy())
    numbers = [1, 2]
    assert tokenize_value([numbers, numbers]) == tokenize_value([[1, 2], [1, 2]])
    assert tokenize_value({"b", "a", ("c", 1)}) == tokenize_value({("c", 1), "a", "b"})


def test_what_holds_itself_ends():
    def ring(n):
        things: list = [types.SimpleNamespace(number=k) for k in range(n)]
        for one, two in itertools.pairwise([*things, things[0]]):
            one.next, two.before = two, {"list": [one], "set": frozenset({("x", 1)})}
        return things[0]

    assert tokenize_value(ring(5)) == tokenize_value(ring(5)) != tokenize_value(ring(6))
