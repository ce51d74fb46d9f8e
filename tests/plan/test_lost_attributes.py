"""An attribute of a UDF that tasks would not see is an error before the run."""

import pathlib

import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from udf_zoo import Rows
from udfdask.errors import ArgumentValueError
from udfdask.plan.parameters import find_lost_attribute
from udfdask.testing import UDFCheckError, check_udf
from udfdask.udfs import ApplyMasksUDF, AutoUDF, CoMUDF, SumUDF, VirtualDetectorUDF

DATA = da.ones((2, 3, 4, 4), chunks=(1, 3, 4, 4))


class Forgets(Rows):
    """The first mistake of everybody: the parameter does not reach `super().__init__`."""

    def __init__(self, thr=5):
        super().__init__()
        self._thr = thr


class Passes(Rows):
    def __init__(self, thr=5):
        super().__init__(thr=thr)
        self._thr = thr


class OfClass(Rows):
    thr = 5
    weights = np.ones(3)


class Draws(Rows):
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
    assert ud.run_udf(DATA, Forgets(5))["sums"].compute()[0, 0] == 16


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


def test_what_cannot_be_compared_is_left_alone(tmp_path):
    class Objects(Rows):
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
    assert ud.run_udf(DATA, udf)["sums"].compute()[0, 0] == 16


@pytest.mark.parametrize(
    ("default", "value"),
    [
        (pathlib.PurePath("a"), pathlib.PurePath("b")),
        (np.mean, np.sum),
        (5, 6.5),
        (np.ones(3), np.ones(4)),
        (None, DATA),
    ],
)
def test_constants_and_functions_that_are_forgotten_parameters(default, value):
    class Own(Rows):
        def __init__(self, thing=default):
            super().__init__()
            self.__thing = thing

    ud.run_udf(DATA, Own())
    with pytest.raises(ArgumentValueError, match="pass thing=thing to super"):
        ud.run_udf(DATA, Own(value))


def test_counters_and_random_seeds_are_no_lost_parameters():
    assert ud.run_udf(DATA, Draws())["sums"].compute()[0, 0] == 16


def test_the_udfs_of_the_library_have_none():
    detector = VirtualDetectorUDF("disk", r=1)
    for udf in (detector, ApplyMasksUDF({"a": np.ones((4, 4))}), AutoUDF(f=np.sum), CoMUDF()):
        assert find_lost_attribute(udf) is None
