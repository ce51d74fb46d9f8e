"""dask's expression arrays (`array.query-planning`): the same numbers, and one pass.

dask chooses the kind of arrays when `dask.array` is imported, so the cases run in a process that
has no other kind: `DASK_ARRAY__QUERY_PLANNING=True` chooses this. Each case returns whether it is
right. `show_outcomes` prints by case that and the number of blocks that were loaded.
"""

import json
import os
import sys
import traceback
import warnings
from pathlib import Path

import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from making import run_python
from udf_zoo import Rows
from udfdask.corrections import CorrectionSet, Descan
from udfdask.udfs import CoMUDF, StdDevUDF, SumSigUDF, SumUDF

xr = pytest.importorskip("xarray", reason="xarray is an extra")

DATA = np.random.default_rng(0).integers(0, 100, (4, 6, 8, 8)).astype("float64")
ROI = np.eye(4, 6, dtype=bool)
FRAME, SUMS = DATA.sum((0, 1)), DATA.sum((2, 3))
LOADED = []


class Source:
    """Reading it is counted."""

    shape, dtype, ndim = DATA.shape, DATA.dtype, DATA.ndim

    def __getitem__(self, index):
        LOADED.append(index)
        return DATA[index]


class Minus(Rows):
    """Sums frames minus a parameter for the whole run."""

    def process_frame(self, frame):
        self.results.sums[:] = (frame - self.params.frame).sum()


class Times(Rows):
    """Sums frames times a parameter for each of them."""

    def process_frame(self, frame):
        self.results.sums[:] = frame.sum() * self.params.factor


X = da.from_array(Source(), chunks=(2, 3, 8, 8), meta=np.empty((0,) * 4))  # four blocks


def same(a, b):
    assert isinstance(a, np.ndarray) or np.isscalar(a)
    return bool(np.allclose(a, b))


def several_udfs():
    total, spread, com = ud.compute(*ud.run_udf(X, [SumUDF(), StdDevUDF(), CoMUDF()]))
    right = same(total["intensity"], FRAME) and same(spread["std"], DATA.std((0, 1)))
    return right and com["magnitude"].shape == (4, 6)


def chained():
    array = ud.run_udf(X, SumSigUDF())["intensity"]
    bright = ((array > 3000).sum() + (array[1:] * 2).max()).compute()
    return same(bright, (SUMS > 3000).sum() + (SUMS[1:] * 2).max())


def with_the_data_themselves():
    total, mean = ud.compute(ud.run_udf(X, SumUDF()), X.mean(axis=(0, 1)))
    return same(total["intensity"] / 24, mean)


def lazy_parameter_of_the_data():
    result = ud.run_udf(X, Minus(frame=X.mean(axis=(0, 1))))
    return same(result.compute()["sums"], (DATA - DATA.mean((0, 1))).sum((2, 3)))


def aux_data():
    sums = ud.run_udf(X, SumSigUDF())["intensity"]
    factor = Times.aux_data(sums + 1, kind="nav", dtype="float64")
    return same(ud.run_udf(X, Times(factor=factor)).compute()["sums"], SUMS * (SUMS + 1))


def corrections():
    result = ud.run_udf(X, SumUDF(), corrections=CorrectionSet(dark=da.ones((8, 8))))
    return same(result.compute()["intensity"], (DATA - 1).sum((0, 1)))


def descan():
    """Shifts of one pixel along y, given lazily."""
    shifts = da.ones((*X.shape[:2], 2), chunks=2) * np.array([1, 0])
    expected = np.concatenate([DATA[:, :, 1:], 0 * DATA[:, :, :1]], axis=2).sum((0, 1))
    runs = [ud.run_udf(X, SumUDF(), descan=given) for given in (shifts, Descan(shifts))]
    return all(same(result["intensity"], expected) for result in ud.compute(*runs))


def progressive():
    (*_, last) = ud.run_udf_iter(X, SumUDF())
    return same(last.buffers[0]["intensity"], FRAME)


def persisted():
    total, sums = ud.run_udf(X, [SumUDF(), SumSigUDF()])
    kept, array = ud.persist(total, sums["intensity"])
    right = same(kept["intensity"].compute(), FRAME)
    return right and hasattr(array, "expr") and same(array.sum().compute(), DATA.sum())


def cluster():
    from distributed import Client

    with Client(processes=False, n_workers=1, threads_per_worker=2, dashboard_address=":0"):
        total, sums = ud.run_udf(X, [SumUDF(), SumSigUDF()])
        done, array = ud.compute(total, sums["intensity"] + 1)
    return same(done["intensity"], FRAME) and same(array, SUMS + 1)


# Each case, and the number of blocks that it loads: there are four.
CASES = [
    (several_udfs, 4),
    (chained, 4),
    (with_the_data_themselves, 4),
    (lazy_parameter_of_the_data, 8),  # the mean has to be known first
    (aux_data, 4),
    (corrections, 4),
    (descan, 4),
    (progressive, 4),
    (persisted, 4),
    (cluster, 4),
]


def show_outcomes():
    assert "expr" in da.Array.__module__, "dask has chosen the other kind of arrays"
    warnings.simplefilter("error")
    warnings.filterwarnings("ignore", category=ResourceWarning)
    outcomes = {}
    for function, _ in CASES:
        LOADED.clear()
        try:
            right = bool(function())
        except Exception:  # noqa: BLE001  # the other cases go on
            right = traceback.format_exc()
        outcomes[function.__name__] = (right, len(LOADED))
    print(json.dumps(outcomes))  # noqa: T201


@pytest.fixture(scope="module")
def outcomes():
    pytest.importorskip("distributed")
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    done = run_python(
        "-c",
        "import test_expression_arrays as cases; cases.show_outcomes()",
        env={"PYTHONPATH": path, "DASK_ARRAY__QUERY_PLANNING": "True"},
    )
    return json.loads(done.stdout.splitlines()[-1])


def test_numbers(outcomes):
    wrong = {name: right for name, (right, _) in outcomes.items() if right is not True}
    assert not wrong, "\n".join(f"{name}: {said}" for name, said in wrong.items())


def test_each_block_is_loaded_once(outcomes):
    loaded = {name: n for name, (_, n) in outcomes.items()}
    assert loaded == {function.__name__: n for function, n in CASES}
