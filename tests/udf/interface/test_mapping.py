"""map_frames and AutoUDF: a plain function on each frame."""

import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from making import NAV, SIG, SYNC
from udfdask.testing import raise_if_dask_computes
from udfdask.udfs import AutoUDF


def test_map_frames(x, values):
    def column_sums(frame, power=1):
        return frame.sum(axis=0) ** power

    found = ud.map_frames(x, column_sums, power=2)
    assert isinstance(found, da.Array)
    assert found.shape == (*NAV, 5)
    assert found.chunks[:2] == x.chunks[:2]
    np.testing.assert_allclose(found.compute(**SYNC), values.sum(axis=2) ** 2)
    scalar = ud.map_frames(x, np.max, roi=(1, 1)).compute(scheduler="threads")
    assert scalar[1, 1] == values[1, 1].max()
    assert np.isnan(scalar).sum() == 23


def test_map_frames_ragged(x, values):
    def above(frame, level):
        return frame[frame > level]

    found = ud.map_frames(x, above, ragged=True, level=100, roi=np.s_[1:]).compute(**SYNC)
    assert found.dtype == object
    assert found[0, 0] is None
    for place in np.ndindex(3, 6):
        np.testing.assert_array_equal(found[1:][place], above(values[1:][place], 100))


@pytest.mark.parametrize(
    "value", [np.zeros((2, 3)), [1, 2], (1, "a"), {"a": 1}, "text", None, 3.5, np.zeros(1)]
)
def test_map_frames_ragged_takes_anything(x, value):
    found = ud.map_frames(x, lambda frame: value, ragged=True).compute(**SYNC)
    assert found.shape == NAV
    for one in found.reshape(-1):
        assert type(one) is type(value)
        np.testing.assert_equal(one, value)


def test_function_is_called_once_while_building(x):
    calls = []

    def f(frame):
        calls.append(frame.shape)
        return frame.sum()

    ud.map_frames(x, f)
    assert calls == [SIG]


def test_function_is_not_called_while_building_if_told(x):
    def f(frame):
        raise AssertionError("called")

    found = ud.map_frames(x, f, output_shape=(2,), output_dtype="int16")
    assert (found.shape, found.dtype) == ((*NAV, 2), np.int16)
    assert ud.map_frames(x, f, ragged=True).dtype == object


def test_function_that_fails_on_the_mock_frame(x):
    def f(frame):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as caught:
        ud.map_frames(x, f)
    assert "output_shape= and output_dtype=" in caught.value.__notes__[0]
    for value in ({"a": 1}, [[1], [1, 2]]):
        with pytest.raises(ud.UDFError, match=r"ragged=True"):
            ud.map_frames(x, lambda frame, value=value: value)


def test_none_is_nan_in_results_of_floats(x):
    first = x.compute(**SYNC)[0, 0]
    found = ud.map_frames(x, lambda frame: None if np.array_equal(frame, first) else 1.5)
    found = found.compute(**SYNC)
    assert np.argwhere(np.isnan(found)).tolist() == [[0, 0]]
    assert found[0, 1] == 1.5


def test_an_empty_array_for_the_frame_of_ones(x):
    def above(frame):
        return frame[frame > 5]

    message = r"empty array for a frame of ones: pass ragged=True .*, or output_shape=\.\.\."
    with pytest.raises(ud.ArgumentValueError, match=message):
        ud.map_frames(x, above)
    assert ud.map_frames(x, above, ragged=True).dtype == object
    assert ud.map_frames(x, above, output_shape=(0,)).shape == (*NAV, 0)
    nothing = ud.map_frames(x[..., :0], np.fft.fftshift)
    assert nothing.shape == (*NAV, *SIG[:-1], 0)


def test_auto_udf_wants_a_function():
    with pytest.raises(ud.ArgumentTypeError, match="expected a function of a frame"):
        AutoUDF(f=3)
    with pytest.raises(ud.ArgumentTypeError, match=r"no argument 'raged': .* go into kwargs="):
        AutoUDF(np.sum, raged=True)
    with pytest.raises(ud.ArgumentTypeError, match=r"kwargs must be a mapping .*, not int"):
        AutoUDF(f=np.sum, kwargs=3)


@pytest.mark.parametrize(
    ("of_ones", "of_others"),
    [
        (0, 0.5),
        (True, 3),
        (0.0, 1j),
        (np.zeros(3), 1.0),
        (np.zeros((2, 3)), np.ones(3)),
        (0.0, np.ones(3)),
    ],
)
def test_nothing_is_cut_or_spread(of_ones, of_others):
    """Numbers would lose their fractions, and arrays be repeated."""
    lazy = ud.map_frames(
        da.zeros((2, 3, 4, 5), chunks=(1, 3, 4, 5)),
        lambda frame: of_ones if frame.all() else of_others,
    )
    with pytest.raises(ud.UDFError):
        lazy.compute(**SYNC)


def test_a_dtype_that_was_asked_for_is_kept():
    x = da.full((2, 3, 4, 5), 7.9, chunks=(1, 3, 4, 5))
    for f, dtype in ((np.max, "int16"), (np.max, "float32"), (lambda frame: 7, "uint8")):
        found = ud.map_frames(x, f, output_dtype=dtype)
        np.testing.assert_array_equal(found.compute(**SYNC), np.full((2, 3), 7.9).astype(dtype))
    narrow = ud.map_frames(x, lambda frame: np.uint8(7) if frame.min() == 1 else 8)
    assert (narrow.compute(**SYNC) == 8).all()


def test_a_lazy_parameter_of_the_function(x, values):
    with raise_if_dask_computes():
        found = ud.map_frames(x, lambda frame, by: frame.sum(axis=0) * by, by=da.ones(()) * 3)
    assert found.shape == (*NAV, 5)
    np.testing.assert_allclose(found.compute(**SYNC), values.sum(axis=2) * 3)


@pytest.mark.parametrize("lazy", [False, True])
def test_parameters_with_a_value_for_each_frame(x, values, lazy):
    def shifted(frame, offset, weights, power):
        assert np.ndim(offset) == 0
        return frame.sum() + offset**power + weights.sum()

    offset = np.arange(np.prod(NAV), dtype="float64").reshape(NAV)
    weights = np.stack([offset, offset + 1], axis=-1)
    wrap = da.from_array if lazy else np.asarray
    with raise_if_dask_computes():
        found = ud.map_frames(
            x,
            shifted,
            offset=ud.UDF.aux_data(wrap(offset), kind="nav", dtype="float64"),
            weights=ud.UDF.aux_data(wrap(weights), kind="nav", extra_shape=(2,), dtype="float64"),
            power=2,
        )
    expected = values.sum(axis=(2, 3)) + offset**2 + weights.sum(axis=-1)
    np.testing.assert_allclose(found.compute(scheduler="threads"), expected)
