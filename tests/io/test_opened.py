"""Names and scales of axes that a file says little about."""

import importlib

import numpy as np
import pytest

from udfdask.arrays.geometry.axes import (
    Axis,
    axis_of_values,
    default_axis_names,
    with_different_names,
)
from udfdask.errors import ArgumentValueError
from udfdask.io import open_file
from udfdask.io.opened_file import choose_sig_dims


@pytest.mark.parametrize(
    ("ndim", "sig_dims", "names"),
    [
        (4, 2, ("y", "x", "sig_y", "sig_x")),
        (3, 1, ("y", "x", "sig_x")),
        (2, 2, ("sig_y", "sig_x")),
        (6, 3, ("nav_0", "nav_1", "nav_2", "sig_0", "sig_1", "sig_2")),
    ],
)
def test_default_names(ndim, sig_dims, names):
    assert default_axis_names(ndim, sig_dims) == names


@pytest.mark.parametrize(
    ("asked", "ndim", "known", "sig_dims"),
    [
        (None, 1, 0, 1),
        (None, 2, 0, 1),
        (None, 3, 0, 2),
        (None, 3, 1, 1),
        (1, 4, 2, 1),
        (4, 4, 2, 4),
    ],
)
def test_signal_dimensions(asked, ndim, known, sig_dims):
    assert choose_sig_dims(asked, ndim, known=known) == sig_dims


@pytest.mark.parametrize("asked", [0, -1, 5])
def test_signal_dimensions_that_cannot_be(asked):
    with pytest.raises(ArgumentValueError, match=rf"sig_dims must be from 1 to 4.*got {asked}"):
        choose_sig_dims(asked, 4)


def test_names_are_all_there_and_different():
    axes = with_different_names(
        [Axis(name="x", unit="nm", scale=2.0), None, Axis(name=""), Axis(name="x")], 2
    )
    assert [axis.name for axis in axes] == ["x", "x_", "sig_y", "x__"]
    assert (axes[0].unit, axes[0].scale) == ("nm", 2.0)


def test_an_even_coordinate_gives_scale_and_offset():
    axis = axis_of_values("t", np.array([4.0, 3.5, 3.0]), "s")
    assert axis == Axis(name="t", unit="s", scale=-0.5, offset=4.0)


@pytest.mark.parametrize("values", [[1.0, 2.0, 4.0], [4, 2, 1], [3.0]])
def test_an_uneven_coordinate_keeps_its_values(values):
    axis = axis_of_values("t", np.array(values), "s")
    assert axis == Axis(name="t", unit="s", values=tuple(map(float, values)))
    np.testing.assert_array_equal(axis.positions(len(values)), values)
    with pytest.raises(ValueError, match="not evenly spaced"):
        axis.to_pixels(2.0)


@pytest.mark.parametrize(
    "values",
    [[1.0, 4.0, 2.0], [np.inf], [], [2, 2, 2], ["a", "b"], [[1, 2], [3, 4]], [1, np.nan, 3]],
)
def test_any_other_coordinate_counts_pixels(values):
    assert axis_of_values("t", np.array(values), "s") == Axis(name="t")


def test_the_text_of_an_opened_file_is_short(tmp_path):
    hs = pytest.importorskip("hyperspy.api", reason="HyperSpy is an extra")
    signal = hs.signals.Signal2D(np.ones((2, 3, 8, 8), "u2"))
    axis = signal.axes_manager.signal_axes[0]
    axis.name, axis.units, axis.scale, axis.offset = "kx", "mrad", 0.5, -2
    signal.metadata.Signal.quantity = "Electrons (counts)"
    signal.save(tmp_path / "scan.hspy")
    first, *lines = repr(open_file(tmp_path / "scan.hspy")).splitlines()
    assert first.startswith("<OpenedFile 'scan', HyperSpy")
    assert "uint16 in counts" in lines[0]
    assert lines[1].endswith("kx 8")
    assert lines[2:] == ["  kx: -2 to 1.5 mrad, step 0.5"]


@pytest.mark.parametrize("package", ["udfdask.io", "udfdask.masks"])
def test_tab_completion_shows_public_names(package):
    module = importlib.import_module(package)
    assert dir(module) == sorted(module.__all__)
