"""The default of sig_dims: the attribute signal_dims that to_xarray writes, otherwise 2."""

import json

import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from udfdask.errors import ArgumentValueError
from udfdask.io import OpenedFile
from udfdask.udfs import SumSigUDF, SumUDF

xr = pytest.importorskip("xarray", reason="xarray is an extra")
import udfdask.xarray  # noqa: E402


def spectra(**more):
    """A scan of 3 x 4 spectra."""
    data = np.arange(60.0).reshape(3, 4, 5)
    axes = tuple(ud.Axis(name=name) for name in ("y", "x", "E"))
    array = da.from_array(data, chunks=(1, 4, 5))
    opened = OpenedFile(array=array, sig_dims=1, reader="", title="", axes=axes, **more)
    return opened.to_xarray()


def test_spectra_of_a_file_are_spectra():
    array = spectra()
    assert array.attrs == {"signal_dims": '["E"]'}
    image = array.udf.run_udf(SumSigUDF())["intensity"]
    np.testing.assert_array_equal(image, array.sum("E"))
    assert array.udf.map_frames(np.sum).dims == ("y", "x")
    assert array.udf.explain(SumUDF()).n_chunks == 3
    *_, last = array.udf.run_udf_iter(SumUDF(), scheduler="synchronous")
    assert last.buffers[0]["intensity"].dims == ("E",)


@pytest.mark.parametrize("sig_dims", [2, ("x", "E")])
def test_explicit_sig_dims_win(sig_dims):
    dataset = spectra().udf.run_udf(SumUDF(), sig_dims=sig_dims)
    assert dataset["intensity"].dims == ("x", "E")


def test_a_dimension_with_a_new_name():
    array = spectra().rename(E="energy")
    with pytest.raises(ArgumentValueError, match="pass sig_dims="):
        array.udf.run_udf(SumUDF())
    assert array.udf.run_udf(SumUDF(), sig_dims="energy")["intensity"].dims == ("energy",)


@pytest.mark.parametrize("keep_attrs", [None, True, False])
def test_results_do_not_get_the_attribute(keep_attrs):
    array = spectra()
    array.attrs["sample"] = "gold"
    dataset = array.udf.run_udf([SumUDF(), SumSigUDF()], keep_attrs=keep_attrs)[0]
    mapped = array.udf.map_frames(np.cumsum, output_dims=["E"], keep_attrs=keep_attrs)
    for result in (dataset, dataset["intensity"], mapped):
        assert "signal_dims" not in result.attrs
    assert ("sample" in dataset.attrs) is (keep_attrs is not False)
    assert json.loads(array.signal_dims) == ["E"]


@pytest.mark.parametrize("written", ["zarr", "nc"])
@pytest.mark.parametrize("dims", [("E",), ("x", "E")])
def test_the_attribute_survives_a_file(tmp_path, written, dims):
    data, axes = spectra().data, tuple(ud.Axis(name=name) for name in ("y", "x", "E"))
    opened = OpenedFile(array=data, sig_dims=len(dims), reader="", title="", axes=axes)
    array = opened.to_xarray().rename("scan")
    path = tmp_path / f"scan.{written}"
    if written == "nc":
        pytest.importorskip("scipy", reason="scipy writes netCDF 3")
        array.to_netcdf(path, engine="scipy")
        found = xr.open_dataset(path, engine="scipy")
    else:
        array.to_dataset().to_zarr(path, consolidated=False)
        found = xr.open_zarr(path, consolidated=False)
    with found:
        assert found["scan"].udf.run_udf(SumUDF())["intensity"].dims == dims


@pytest.mark.parametrize("value", ["E", ["E"], np.array(["E"]), '["E"]'])
def test_an_attribute_of_the_user(value):
    array = spectra().assign_attrs(signal_dims=value)
    assert array.udf.run_udf(SumUDF())["intensity"].dims == ("E",)


@pytest.mark.parametrize("value", [2, "2", "[1]", [], ["E", 3]])
def test_an_attribute_of_another_program(value):
    array = spectra().assign_attrs(signal_dims=value).rename(y="line")
    with pytest.raises(ArgumentValueError, match="pass sig_dims="):
        array.udf.run_udf(SumUDF())


@pytest.mark.parametrize(
    ("dims", "meant"),
    [
        (("y", "x", "time"), ("y", "x")),
        (("y", "x", "E"), "E"),
        (("Row", "Col", "t"), ("Row", "Col")),
        (("row", "column", "time"), "time"),
        (("y", "ky", "x", "kx"), ("ky", "kx")),
    ],
)
def test_names_that_say_otherwise(dims, meant):
    array = xr.DataArray(da.ones((2, 3, 4, 5)[: len(dims)]), dims=dims)
    calls = (
        lambda: array.udf.run_udf(SumUDF()),
        lambda: array.udf.explain(SumUDF()),
        lambda: array.udf.run_udf_iter(SumUDF()),
    )
    for call in calls:
        with pytest.raises(ArgumentValueError, match="sig_dims="):
            call()
    last_two = array.udf.run_udf(SumUDF(), sig_dims=2)["intensity"]
    assert last_two.dims == dims[-2:]
    frames = array.udf.run_udf(SumUDF(), sig_dims=meant)["intensity"]
    assert set(frames.dims) == set([meant] if isinstance(meant, str) else meant)


@pytest.mark.parametrize(
    "dims",
    [
        ("time", "y", "x"),
        ("y", "x", "ky", "kx"),
        ("dim_0", "dim_1", "dim_2"),
        ("y", "x"),
        ("y", "time", "E"),
    ],
)
def test_names_that_fit_or_say_nothing(dims):
    array = xr.DataArray(da.ones((2, 3, 4, 5)[: len(dims)]), dims=dims)
    assert array.udf.run_udf(SumUDF())["intensity"].dims == dims[-2:]
