"""Mistakes are found at the call, before anything is computed."""

import numpy as np
import pytest

from making import make
from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.testing import raise_if_dask_computes
from udfdask.udfs import SumUDF

xr = pytest.importorskip("xarray", reason="xarray is an extra")
pytest.importorskip("udfdask.xarray")


@pytest.mark.parametrize("method", ["run_udf", "run_udf_iter"])
@pytest.mark.parametrize(
    ("sig_dims", "error"),
    [
        (("ky", "kz"), ArgumentValueError),
        ("ky kx", ArgumentValueError),
        (("kx", "kx"), ArgumentValueError),
        ((), ArgumentValueError),
        (0, ArgumentValueError),
        (True, ArgumentTypeError),
    ],
)
def test_signal_dimensions(array, method, sig_dims, error):
    with raise_if_dask_computes(), pytest.raises(error):
        getattr(array.udf, method)(SumUDF(), sig_dims)


@pytest.mark.filterwarnings("ignore:Duplicate dimension names")
@pytest.mark.parametrize("dims", [("a", "a", "ky", "kx"), ("y", "x", "k", "k")])
def test_two_dimensions_of_one_name(dims):
    with pytest.raises(ArgumentValueError, match="two dimensions of the same name"):
        xr.DataArray(np.ones((2, 2, 3, 3)), dims=dims).udf.run_udf(SumUDF())


@pytest.mark.parametrize("name", ["y", "kx", "thickness"])
def test_results_called_like_labels(array, name):
    udf = make({name: {"kind": "nav"}}, process_frame=lambda self, frame: None)()
    match = rf"'{name}'.*rename="
    with raise_if_dask_computes():
        for method in ("run_udf", "run_udf_iter"):
            with pytest.raises(ArgumentValueError, match=match):
                getattr(array.udf, method)(udf)
        found = array.udf.run_udf(udf, rename={name: "other"})
    assert list(found.data_vars) == ["other"]


TWO = make({"a": {"kind": "nav"}, "b": {"kind": "nav"}}, process_frame=lambda s, f: None)


@pytest.mark.parametrize(
    ("udf", "rename", "error"),
    [
        (SumUDF, "total", ArgumentValueError),
        (SumUDF, {"sum": "total"}, ArgumentValueError),
        (SumUDF, {"intensity": "ky"}, ArgumentValueError),
        (TWO, {"a": "b"}, ArgumentValueError),
    ],
)
def test_rename(array, udf, rename, error):
    with pytest.raises(error):
        array.udf.run_udf(udf(), rename=rename)
