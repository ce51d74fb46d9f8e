"""Axes: what cannot be one, and names and scales that a file says little about."""

import math
import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import udfdask as ud
from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.geometry.axes import Axis, axis_of_values, with_different_names
from udfdask.io import open_file
from udfdask.udfs import SumSigUDF, SumUDF


def test_names_are_all_there_and_different():
    axes = with_different_names(
        [Axis(name="x", unit="nm", scale=2.0), None, Axis(name=""), Axis(name="x")], 2
    )
    assert [axis.name for axis in axes] == ["x", "x_", "sig_y", "sig_x"]
    assert (axes[0].unit, axes[0].scale) == ("nm", 2.0)


@pytest.mark.parametrize("values", [[1.0, 2.0, 4.0], [4, 2, 1], [3.0]])
def test_an_uneven_coordinate_keeps_its_values(values):
    axis = axis_of_values("t", np.array(values), "s")
    assert axis == Axis(name="t", unit="s", values=tuple(map(float, values)))
    np.testing.assert_array_equal(axis.positions(len(values)), values)
    with pytest.raises(ValueError, match="not evenly spaced"):
        axis.to_pixels(2.0)


@given(part=st.slices(7), uneven=st.booleans())
def test_the_axis_of_a_part(part, uneven):
    positions = np.arange(7) ** 2.0 if uneven else 3.0 - 0.5 * np.arange(7)
    axis = axis_of_values("x", positions, "nm")
    found = axis.sliced(part, 7)
    assert (found.name, found.unit) == ("x", "nm")
    np.testing.assert_array_equal(found.positions(len(positions[part])), positions[part])
    labels = Axis(name="x", labels=tuple("abcdefg")).sliced(part, 7).labels
    assert labels == tuple("abcdefg"[part])


class TestPartsOfFiles:
    """A part of an opened file has the axes of that part."""

    @pytest.fixture
    def opened(self, tmp_path):
        np.save(tmp_path / "scan.npy", np.arange(4 * 5 * 6 * 7).reshape(4, 5, 6, 7))
        return open_file(tmp_path / "scan.npy")

    @pytest.mark.parametrize(
        ("index", "sig_dims", "offsets"),
        [
            (np.s_[1:], 2, [1, 0, 0, 0]),
            (np.s_[..., 2:4], 2, [0, 0, 0, 2]),
            (np.s_[1, ..., 3], 1, [0, 0]),
            (np.s_[np.int64(2), 1], 2, [0, 0]),
            (np.s_[::-1, :, ::2], 2, [3, 0, 0, 0]),
            ((), 2, [0, 0, 0, 0]),
        ],
    )
    def test_part(self, opened, index, sig_dims, offsets):
        part = opened[index]
        expected = np.asarray(opened.array)[index]
        np.testing.assert_array_equal(np.asarray(part.array), expected)
        assert part.sig_dims == sig_dims
        assert [axis.offset for axis in part.axes] == offsets
        udf = SumUDF() if part.array.ndim == sig_dims else SumSigUDF()
        assert ud.run_udf(part, udf)["intensity"].compute().sum() == expected.sum()

    @pytest.mark.parametrize("index", [[1, 2], True, "y", None, np.ones(4, bool)])
    def test_other_indices(self, opened, index):
        with pytest.raises(ArgumentTypeError, match=r"slices and integers.*opened\.array"):
            opened[index]

    @pytest.mark.parametrize("index", [np.s_[:, :, 1, 1], 9, np.s_[1:, 1:, 1:, 1:, 1:]])
    def test_indices_that_do_not_fit(self, opened, index):
        with pytest.raises((ValueError, IndexError)):
            opened[index]

    def test_axes_of_data_of_another_shape(self, opened):
        with pytest.raises(ArgumentValueError, match=r"shape \(4, 5, 6, 7\).*opened\[2:5, ::2\]"):
            ud.run_udf(opened.array[1:], SumUDF(), axes=opened)


@pytest.mark.parametrize(
    "arguments",
    [
        {"name": 3},
        {"name": None},
        {"name": "y", "unit": 2},
        {"name": "y", "scale": "0.4"},
        {"name": "y", "scale": (0.4, "mrad")},
        {"name": "y", "scale": None},
        {"name": "y", "scale": True},
        {"name": "y", "offset": "1 nm"},
    ],
)
def test_wrong_types(arguments):
    with pytest.raises(ArgumentTypeError):
        Axis(**arguments)


@pytest.mark.parametrize("wrong", [{"scale": 0}, {"scale": math.nan}, {"offset": math.inf}])
def test_scales_that_give_no_positions(wrong):
    with pytest.raises(ArgumentValueError, match="a finite number other than 0"):
        Axis(name="y", unit="nm", **wrong)


@pytest.mark.parametrize("kind", [int, float, np.float32, np.int16, np.longdouble])
def test_numbers_of_any_kind(kind):
    axis = Axis(name="y", unit="nm", scale=kind(2), offset=kind(-3))
    assert axis.to_pixels(1) == 2
    assert replace(axis, name="x") == Axis(name="x", unit="nm", scale=2, offset=-3)
    assert pickle.loads(pickle.dumps(axis)) == axis


def test_an_opened_file_shows_its_calibration(tmp_path):
    np.save(tmp_path / "scan.npy", np.ones((2, 3, 4)))
    opened = open_file(tmp_path / "scan.npy", sig_dims=2)
    energy = Axis(name="E", unit="eV", values=(1.0, 2.0, 4.0, 8.0))
    axes = (Axis(name="t", unit="ms", scale=0.25), Axis(name="y"), energy)
    shown = repr(replace(opened, axes=axes))
    assert all(text in shown for text in ("t 2 (0.25 ms)", "y 3,", "E 4 (uneven, eV)"))
