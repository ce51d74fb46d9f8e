"""What a plain function returns for a frame: numbers that fit, and lazy parameters of it."""

import dask
import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from making import SYNC
from udfdask.testing import raise_if_dask_computes
from udfdask.udfs import AutoUDF

X = da.ones((2, 3, 4, 5), chunks=(1, 3, 4, 5))

UNFIT = [
    (300, "uint8", OverflowError),
    ([300, 1], "uint8", OverflowError),
    ([[300]], "uint8", OverflowError),
    (-1, "uint8", OverflowError),
    (float("nan"), "int64", ValueError),
    ([float("nan"), 1], "int64", ValueError),
    (1 + 2j, "float64", TypeError),
    ([1 + 2j, 1], "float64", TypeError),
]
"""Python numbers, the dtype of the result, and what NumPy raises."""


@pytest.mark.parametrize(("value", "dtype", "error"), UNFIT)
def test_python_numbers_that_do_not_fit_are_refused(value, dtype, error):
    shape = np.shape(value) if np.size(value) > 1 else ()
    lazy = ud.map_frames(X, lambda _: value, output_shape=shape, output_dtype=dtype)
    with pytest.raises(error):
        lazy.compute(**SYNC)


def test_a_python_number_that_does_not_fit_the_dtype_for_ones_is_refused():
    twos = 2 * X
    lazy = ud.map_frames(twos, lambda frame: np.uint8(3) if frame.sum() == 20 else 300)
    assert lazy.dtype == np.uint8
    with pytest.raises(OverflowError, match="300"):
        lazy.compute(**SYNC)


@pytest.mark.parametrize(
    ("value", "shape"), [(7, ()), ([[7]], ()), ([7, 8], (2,)), ([[7], [8]], (2, 1)), ([], (0,))]
)
def test_python_numbers_that_fit_are_stored(value, shape):
    found = ud.map_frames(X, lambda _: value, output_shape=shape, output_dtype="uint8")
    expected = np.broadcast_to(np.reshape(value, shape), (2, 3, *shape))
    np.testing.assert_array_equal(found.compute(**SYNC), expected)


@pytest.mark.parametrize("value", [7, [7], [7, 8, 9], [[7, 8]]])
def test_python_numbers_of_another_shape_are_refused(value):
    lazy = ud.map_frames(X, lambda _: value, output_shape=(2,), output_dtype="uint8")
    with pytest.raises(ud.UDFError, match="correct output_shape="):
        lazy.compute(**SYNC)


def test_a_lazy_parameter_of_unknown_size_is_given_as_it_is():
    numbers = da.arange(6, chunks=3)
    some = numbers[numbers > 3]
    with raise_if_dask_computes():
        result = ud.run_udf(X, AutoUDF(lambda frame, a: frame.sum() * a.max(), kwargs={"a": some}))
    assert (result["result"].compute(**SYNC) == 100).all()


def test_a_delayed_parameter_needs_the_shape_and_dtype_of_the_result():
    def scaled(frame, factor):
        return frame.sum() * factor

    kwargs = {"factor": dask.delayed(2)}
    with pytest.raises(ud.UDFError, match=r"shape of a Delayed.* is unknown: pass output_shape= "):
        ud.run_udf(X, AutoUDF(scaled, kwargs=kwargs))
    udf = AutoUDF(scaled, output_shape=(), output_dtype=float, kwargs=kwargs)
    assert (ud.run_udf(X, udf)["result"].compute(**SYNC) == 40).all()
