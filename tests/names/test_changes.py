"""Whatever changes what code does, in the process or in a file, changes its name."""

import builtins
import functools
import importlib
import itertools
import math
import random
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
from udfdask.base.names.naming import tokenize_value
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
    LEVEL = 1
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
    SCALE = Scale(3)
"""
# an expression of the module that uses the helper, and what changes what it gives
CHANGES = {
    "a function of a helper module": ("helper.f()", "helper.f = lambda: 0"),
    "a function of a helper's function": ("helper.f()", "helper.inner = lambda: 0"),
    "the code of a function": ("helper.f()", "helper.f.__code__ = (lambda a, b=1: 0).__code__"),
    "another attribute": ("vars(helper.SCALE)", "helper.SCALE.more = 4"),
    "a method of its base": ("helper.SCALE.get()", "helper.Base.get = lambda self: 0"),
    "its class": ("helper.SCALE.get()", "helper.SCALE.__class__ = type('X', (helper.Base,), {})"),
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
    "a module in place of another": ("math.floor(1.5)", "prog.math = np"),
    "the same import of another module": ("f()", "prog.f = other.f"),
    "a name that an import inside takes": ("inside_from()", "helper.LEVEL = 2"),
    "an import inside of a star": ("STARRED()", "prog.STARRED = helper.inner"),
    "what a module makes when it is asked for": ("lazy.anything", "lazy.VALUES['anything'] = 2"),
    "a function of __getattr__": ("lazy.anything", "lazy.__getattr__ = lambda name: 0"),
    "what code that was executed reads": ("executed()", "space['level'] = 2"),
    "the seed of NumPy's functions": ("np.random.rand()", "np.random.seed(5)"),
    "the environment": ("os.environ.get('A')", "monkeypatch.setenv('A', 'b')"),
    "an object array that holds itself": ("LOOP[1]", "prog.LOOP[1] = 2"),
    "the package's next module": ("package.main.f()", "package_next.VALUE = 2"),
    "a count of calls": ("next(COUNTER)", "next(prog.COUNTER)"),
    "a bound builtin": ("APPEND.__self__", "prog.APPEND(1)"),
}
PROG = """
    import math, os
    import numpy as np
    import package.main
    import helper, lazy
    from helper import f
    from starred import *
    COUNT = 1
    COUNTER = iter([1, 2, 3])
    APPEND = [].append
    LOOP = np.array([None, 1], dtype=object)
    LOOP[0] = LOOP
    def used(module):
        return module.LEVEL
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
    load("package/main", "def f():\n    from . import next\n    return next.VALUE\n")
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
        (1.5, 1.25),
        (1, 1.0),
        (1, True),
        (0.0, -0.0),
        (np.float32(1), np.float64(1)),
        ("a", b"a"),
        (None, 0),
        (np.sum, np.mean),
        (np.arange(3), np.arange(3) + 1),
        (np.zeros((2, 3)), np.zeros((3, 2))),
        (np.array([1, "x"], object), np.array([2, "x"], object)),
        (np.arange(4).reshape(2, 2), np.arange(4).reshape(2, 2).T),
        (np.dtype([("a", "i4"), ("b", "i4")]), np.dtype([("b", "i4"), ("a", "i4")])),
        (np.array(["a-b", "c"], object), np.array(["a", "b-c"], object)),
        (np.zeros(2, "M8[s]"), np.zeros(2, "M8[ms]")),
        (np.ma.array([1, 2], mask=[0, 1]), np.ma.array([1, 2], mask=[1, 0])),
        (np.zeros(0), np.zeros((0, 1))),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({1: 0, "1": 1}, {"1": 0, 1: 1}),
        ((1, 2), [1, 2]),
        (range(3), slice(3)),
        (10**5000, 10**5000 + 1),
        ("a".join, "b".join),
        (random.Random(1), random.Random(2)),
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
