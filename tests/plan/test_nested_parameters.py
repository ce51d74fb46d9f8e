"""Dask collections inside of lists, tuples and dictionaries are computed once per run."""

import dataclasses
from collections import OrderedDict
from typing import NamedTuple

import dask.array as da
import numpy as np
import pytest
from dask import delayed

import udfdask as ud
from counting import counts, note
from udf_zoo import Rows
from udfdask.testing import raise_if_dask_computes, run_reference

DATA = np.random.default_rng(3).random((4, 6, 3, 2)).astype("f4")


class Pair(NamedTuple):
    first: object
    second: object


def loaded(block, folder, what):
    note(folder, what)
    return block


def factor(folder):
    note(folder, "factor")
    return 3.0


class Nested(Rows):
    """Frames times everything in a table."""

    def __init__(self, table):
        super().__init__(table=table)

    def process_frame(self, frame):
        self.results.sums[:] = sum((frame * each).sum() for each in flat(self.params.table))


def flat(value):
    """All numbers and arrays in nested containers."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [each for member in value for each in flat(member)]
    assert isinstance(value, (int, float, np.ndarray, np.generic)), type(value)
    return [value]


@pytest.fixture
def x():
    return da.from_array(DATA, chunks=(2, 3, 3, 2))


@pytest.fixture
def lazy(tmp_path):
    """An array in two chunks whose loading is counted, and a Delayed."""
    array = da.from_array(np.arange(6.0).reshape(3, 2), chunks=(3, 1))
    counted = array.map_blocks(loaded, str(tmp_path), "dark", dtype="f8", meta=np.empty((0, 0)))
    return counted, delayed(factor, pure=True)(str(tmp_path))


TABLES = {
    "dict": lambda a, d: {"dark": a, "factor": d, "number": 2},
    "tuple": lambda a, d: (1, (a, [d])),
    "keys of all types": lambda a, d: {(1, 2): a, 1.5: {None: d}},
    "subclasses": lambda a, d: OrderedDict(one=Pair(a, d), two=Pair(1, 2)),
    "only a Delayed": lambda a, d: [{"factor": d}, a.sum()],
}


@pytest.mark.parametrize("table", TABLES)
def test_each_is_computed_once(x, lazy, tmp_path, table):
    make = TABLES[table]
    with raise_if_dask_computes():
        result = ud.run_udf(x, Nested(make(*lazy)))
        assert "table" in str(result.explain())
    done = result.compute(scheduler="threads")["sums"]
    assert counts(tmp_path) == {"dark": 2, "factor": 1}
    values = make(np.arange(6.0).reshape(3, 2), 3.0)
    if table == "only a Delayed":
        values = [{"factor": 3.0}, np.float64(15.0)]
    want = ud.run_udf(x, Nested(values)).compute(scheduler="sync")["sums"]
    np.testing.assert_allclose(done, want)


def test_in_a_progressive_run(x, lazy, tmp_path):
    udf = Nested(TABLES["dict"](*lazy))
    *_, last = ud.run_udf_iter(x, udf)
    assert counts(tmp_path) == {"dark": 2, "factor": 1}
    np.testing.assert_allclose(last.buffers[0]["sums"], run_reference(x, udf)["sums"])


def test_parameters_of_a_mapped_function(x, lazy, tmp_path):
    def scaled(frame, dark, by):
        assert isinstance(dark, np.ndarray)
        return frame.sum() * dark.sum() * by[0]

    array, by = lazy
    with raise_if_dask_computes():
        found = ud.map_frames(x, scaled, dark=array, by=[2])
        later = ud.map_frames(x, scaled, dark=array, by=[by], output_shape=(), output_dtype="f8")
    np.testing.assert_allclose(found.compute(), DATA.sum(axis=(2, 3)) * 30)
    assert counts(tmp_path) == {"dark": 2}
    np.testing.assert_allclose(later.compute(), DATA.sum(axis=(2, 3)) * 45)
    with pytest.raises(TypeError, match=r"output_shape="):
        ud.map_frames(x, scaled, dark=array, by=[by])


def test_made_from_the_data_themselves(x):
    mean = x.mean(axis=(0, 1))
    result = ud.run_udf(x, Nested({"mean": [mean]}))
    assert result.explain().passes == 2
    want = (DATA * DATA.mean(axis=(0, 1))).sum(axis=(2, 3))
    np.testing.assert_allclose(result.compute()["sums"], want, rtol=1e-5)


@dataclasses.dataclass
class Options:
    dark: object


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (lambda a, d: [frozenset([d])], "frozenset"),
        (lambda a, d: {"a": (Options(d),)}, "Options"),
    ],
)
def test_what_is_not_taken_apart_is_refused(x, lazy, make, kind):
    with pytest.raises(
        ud.UDFError, match=rf"'table' of Nested .* inside of a {kind}.*separate parameter"
    ):
        ud.run_udf(x, Nested(make(*lazy)))


def test_it_cannot_be_given_while_a_run_goes_on(x):
    with ud.run_udf_iter(x, Nested([1.0])) as run:
        for change in ({"table": [da.ones((3, 2))]}, {"table": Options(delayed(1))}):
            with pytest.raises(TypeError, match="cannot become a dask collection"):
                run.update_parameters([change])
