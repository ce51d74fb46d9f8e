"""An attribute of a UDF that tasks would not see is an error before the run."""

import math
import pathlib

import dask.array as da
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import udfdask as ud
from udfdask.errors import ArgumentValueError
from udfdask.plan.parameters import find_lost_attribute
from udfdask.testing import UDFCheckError, check_udf
from udfdask.udfs import (
    ApplyMasksUDF,
    AutoUDF,
    CoMUDF,
    SumUDF,
    VirtualDetectorUDF,
)

DATA = da.ones((2, 3, 4, 4), chunks=(1, 3, 4, 4))


class Counts(ud.UDF):
    def get_result_buffers(self):
        return {"n": self.buffer(kind="nav", dtype="float32")}

    def process_frame(self, frame):
        self.results.n[:] = frame.sum()


class Forgets(Counts):
    """The first mistake of everybody: the parameter does not reach `super().__init__`."""

    def __init__(self, thr=5):
        super().__init__()
        self._thr = thr


class Passes(Counts):
    def __init__(self, thr=5):
        super().__init__(thr=thr)
        self._thr = thr


class OfClass(Counts):
    thr = 5
    weights = np.ones(3)


class Draws(Counts):
    """A random seed and a counter: bookkeeping of each instance, not a lost parameter."""

    made = 0

    def __init__(self):
        super().__init__()
        type(self).made += 1
        self.number = self.made
        self.seed = np.random.default_rng().integers(1 << 60)
        self.scratch = np.full(3, self.made)


def test_a_forgotten_parameter():
    words = (
        r"Forgets: the attribute '_.*thr' is 50, but tasks would see 5, .*pass .*thr=.*thr "
        r"to super\(\).__init__ and read self.params"
    )
    with pytest.raises(ArgumentValueError, match=words):
        ud.run_udf(DATA, Forgets(50))
    with pytest.raises(UDFCheckError, match=words.removeprefix("Forgets: ")) as caught:
        check_udf(Forgets(50))
    assert caught.value.law == "makes_itself_again"
    assert ud.run_udf(DATA, Forgets(5))["n"].compute()[0, 0] == 16


@pytest.mark.parametrize("cls", [Passes, OfClass])
def test_a_value_that_is_changed_after_construction(cls):
    udf = cls()
    name = "_thr" if cls is Passes else "thr"
    setattr(udf, name, 50)
    with pytest.raises(ArgumentValueError, match=f"'{name}' is 50, but tasks would see 5"):
        ud.run_udf(DATA, udf)
    if cls is Passes:
        with pytest.raises(ArgumentValueError, match="make a new UDF with another thr="):
            ud.explain(DATA, [SumUDF(), udf])


def test_an_array_of_a_class_that_an_instance_replaces():
    udf = OfClass()
    udf.weights = np.zeros(3)
    with pytest.raises(ArgumentValueError, match=r"'weights' is array\(\[0., 0., 0.\]\)"):
        ud.run_udf(DATA, udf)
    udf.weights = np.ones(3)
    ud.run_udf(DATA, udf)


plain = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.lists(st.integers(), max_size=3),
    st.tuples(st.floats(), st.text(max_size=3)),
    hnp.arrays(st.sampled_from(["f4", "i8", "U3"]), hnp.array_shapes(max_dims=2, max_side=4)),
)


def equal(a, b):
    """Compare as the language does, NaN as equal; the type of a container does not count."""
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return False
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(equal, a, b))
    nan = all(isinstance(v, float) and math.isnan(v) for v in (a, b))
    return nan or a == b


@given(default=plain, value=plain)
def test_any_plain_value_is_found_if_it_differs(default, value):
    class Own(Counts):
        def __init__(self, thr=default):
            super().__init__()
            self.thr = thr

    if equal(default, value):
        ud.run_udf(DATA, Own(value))
    else:
        with pytest.raises(ArgumentValueError, match="the attribute 'thr' is "):
            ud.run_udf(DATA, Own(value))


def test_what_cannot_be_compared_is_left_alone(tmp_path):
    class Objects(Counts):
        def __init__(self, steps=3):
            super().__init__(steps=steps)
            self.generator = (i for i in range(steps))
            self.file = (tmp_path / "log").open("w")
            self.file.close()
            self.cells = [object(), np.random.default_rng()]
            self.scratch = np.empty(1000)
            self.table = np.array([object()])
            self.huge = np.zeros(1 << 20)

        @property
        def doubled(self):
            return self.params.steps * 2

    udf = Objects()
    udf.notes = "for me"  # no task reads it, or it is an error there
    udf.huge[3] = np.nan
    assert ud.run_udf(DATA, udf)["n"].compute()[0, 0] == 16


def test_an_object_that_is_a_forgotten_parameter():
    class Model(Counts):
        def __init__(self, model=None, passed=None):
            super().__init__(passed=passed)
            self.model, self.passed, self._cache = model, passed, None

    udf = Model(passed=np.mean)
    udf._cache = object()
    ud.run_udf(DATA, udf)
    with pytest.raises(ArgumentValueError, match=r"'model' is .*pass model=model to super"):
        ud.run_udf(DATA, Model(model=np.mean))


@pytest.mark.parametrize(
    ("default", "value"),
    [
        (pathlib.PurePath("a"), pathlib.PurePath("b")),
        (np.mean, np.sum),
        (None, DATA),
    ],
)
def test_constants_and_functions_that_are_forgotten_parameters(default, value):
    class Own(Counts):
        def __init__(self, thing=default):
            super().__init__()
            self.__thing = thing

    ud.run_udf(DATA, Own())
    with pytest.raises(ArgumentValueError, match="pass thing=thing to super"):
        ud.run_udf(DATA, Own(value))


def test_lazy_attributes_are_not_computed():
    def fail(block):
        raise AssertionError("computed")

    class Lazy(Counts):
        def __init__(self, thing=DATA.map_blocks(fail, meta=DATA._meta)):  # noqa: B008
            super().__init__()
            self.thing = thing

    with pytest.raises(ArgumentValueError, match="pass thing=thing to super"):
        ud.run_udf(DATA, Lazy(DATA.map_blocks(fail, meta=DATA._meta) + 1))


def test_counters_and_random_seeds_are_no_lost_parameters():
    assert ud.run_udf(DATA, Draws())["n"].compute()[0, 0] == 16


def test_the_udfs_of_the_library_have_none():
    detector = VirtualDetectorUDF("disk", r=1)
    for udf in (detector, ApplyMasksUDF({"a": np.ones((4, 4))}), AutoUDF(f=np.sum), CoMUDF()):
        assert find_lost_attribute(udf) is None
