"""Axes whose names contradict the order (y, x): a warning, because vectors go by position."""

import warnings

import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from udfdask.udfs import CoMUDF, SumUDF

DATA = da.from_array(np.random.default_rng(0).random((3, 4, 5, 6)), chunks=(3, 2, 5, 6))


def axes(*names):
    return [ud.Axis(name=name) for name in names]


@pytest.mark.parametrize(
    ("names", "better"),
    [
        (("x", "y", "ky", "kx"), r"\(y, x, ky, kx\)"),
        (("y", "x", "kx", "ky"), r"\(y, x, ky, kx\)"),
        (("scan_x", "scan_y", "qx", "qy"), r"\(scan_y, scan_x, qy, qx\)"),
        (("row", "column", "k_x", "k_y"), r"\(row, column, k_y, k_x\)"),
    ],
)
def test_x_before_y_is_a_warning(names, better):
    with pytest.warns(ud.UDFWarning, match=f"x comes first.*Transpose the data to {better}"):
        ud.run_udf(DATA, CoMUDF(), axes=axes(*names))


@pytest.mark.parametrize(
    "names",
    [
        ("y", "x", "ky", "kx"),
        ("Y", "X", "sig_y", "sig_x"),
        ("x", "y", "row", "column"),
        ("index", "energy", "a", "b"),
        ("time", "x", "kx", "energy"),
    ],
)
def test_no_warning_where_names_agree_or_say_nothing(names):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ud.run_udf(DATA, CoMUDF(), axes=axes(*names))
        ud.run_udf(DATA, CoMUDF())
        ud.run_udf(DATA, SumUDF(), axes=axes("x", "y", "kx", "ky"))


def test_the_remedy_gives_the_right_divergence():
    right = ud.run_udf(DATA, CoMUDF(), axes=axes("y", "x", "ky", "kx"))["divergence"].compute()
    scrambled = DATA.transpose(1, 0, 2, 3)
    with pytest.warns(ud.UDFWarning, match=r"Transpose the data to \(y, x, ky, kx\)"):
        wrong = ud.run_udf(scrambled, CoMUDF(), axes=axes("x", "y", "ky", "kx"))
    assert not np.allclose(wrong["divergence"].compute().T, right)
    mended = scrambled.transpose(1, 0, 2, 3)
    again = ud.run_udf(mended, CoMUDF(), axes=axes("y", "x", "ky", "kx"))["divergence"]
    np.testing.assert_allclose(again.compute(), right)


def test_the_warning_comes_through_the_accessors():
    xr = pytest.importorskip("xarray", reason="xarray is an extra")
    import udfdask.xarray  # noqa: F401

    array = xr.DataArray(DATA, dims=("y", "x", "ky", "kx"))
    with pytest.warns(ud.UDFWarning, match="x comes first"):
        array.udf.run_udf(CoMUDF(), sig_dims=("kx", "ky"))
    with pytest.warns(ud.UDFWarning, match="x comes first"):
        array.transpose("x", "y", ...).udf.run_udf(CoMUDF())
