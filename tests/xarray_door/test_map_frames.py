"""map_frames and xarray's own apply_ufunc return the same DataArray."""

import numpy as np
import pytest

from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.testing import raise_if_dask_computes

xr = pytest.importorskip("xarray", reason="xarray is an extra")
pytest.importorskip("udfdask.xarray")


def spread(frame):
    return frame.max() - frame.min()


def columns(frame):
    return frame.sum(axis=0)


@pytest.mark.parametrize("keep_attrs", [True, False])
@pytest.mark.parametrize(
    ("func", "output_dims", "sizes"),
    [
        (spread, [], {}),
        (columns, ["kx"], {}),
        (np.flipud, ["ky", "kx"], {}),
        (lambda frame: np.quantile(frame, [0.1, 0.5]), ["quantile"], {"quantile": 2}),
    ],
)
@pytest.mark.parametrize("order", ["y x ky kx", "kx y ky x"])
def test_the_same_as_apply_ufunc(array, func, output_dims, sizes, keep_attrs, order):
    data = array.astype("float64").transpose(*order.split(), transpose_coords=False)
    data = data.chunk(ky=-1, kx=-1)
    with raise_if_dask_computes():
        found = data.udf.map_frames(
            func, sig_dims=("ky", "kx"), output_dims=output_dims, keep_attrs=keep_attrs
        )
        wanted = xr.apply_ufunc(
            func,
            data,
            input_core_dims=[["ky", "kx"]],
            output_core_dims=[output_dims],
            vectorize=True,
            dask="parallelized",
            output_dtypes=["float64"],
            dask_gufunc_kwargs={"output_sizes": sizes},
            keep_attrs=keep_attrs,
        )
    assert found.chunks[:2] == wanted.chunks[:2]
    # without attributes apply_ufunc drops those of coordinates too, unlike xarray's reductions
    same = xr.testing.assert_identical if keep_attrs else xr.testing.assert_equal
    same(found.compute(), wanted.compute())
    assert (found.dtype, found.name, found.attrs) == (wanted.dtype, wanted.name, wanted.attrs)


def test_the_unit_of_what_a_function_gives_is_not_known(array):
    assert array.udf.map_frames(spread).attrs == {"beam": 200}
    assert array.udf.map_frames(spread, keep_attrs=True).attrs == array.attrs
    assert array.udf.map_frames(spread, keep_attrs=False).attrs == {}
    with xr.set_options(keep_attrs=True):
        assert array.udf.map_frames(spread).attrs == array.attrs
    with xr.set_options(keep_attrs=False):
        assert array.udf.map_frames(spread).attrs == {}


def test_region_and_parameters(array):
    roi = array["thickness"] > 4
    found = array.udf.map_frames(np.sum, ("ky", "kx"), roi, axis=1, output_dims=["ky"])
    wanted = array.astype("float64").sum("kx").where(roi)
    np.testing.assert_array_equal(found.transpose(*wanted.dims), wanted)


def test_ragged(array):
    found = array[:, :, 0].udf.map_frames(lambda frame: frame[frame > 90], "kx", ragged=True)
    assert found.dtype == object
    frame = array[1, 2, 0].values
    np.testing.assert_array_equal(found.compute().values[1, 2], frame[frame > 90])


@pytest.mark.parametrize(
    ("output_dims", "error"),
    [
        ("ky", ValueError),  # the data have 8 positions along it, the function returns 10
        ([], ArgumentValueError),
        (["a", "b"], ArgumentValueError),
        (["y"], ArgumentValueError),
        ({"ky"}, ArgumentTypeError),  # a set has no order
        (["thickness"], ArgumentValueError),  # a coordinate
    ],
)
def test_names_that_cannot_be(array, output_dims, error):
    array = array.assign_coords(ky=range(8))
    with raise_if_dask_computes(), pytest.raises(error):
        array.udf.map_frames(columns, output_dims=output_dims)


def test_names(array):
    """A map is called as the data, or else as the function; a name of dask is none."""
    assert array.udf.map_frames(spread).name == "scan"
    assert array.rename(None).udf.map_frames(spread).name == "spread"
    unnamed = xr.DataArray(array.data, dims=array.dims)
    assert unnamed.name == array.data.name  # so does xarray
    assert unnamed.udf.map_frames(spread).name == "spread"
    assert unnamed.udf.map_frames(lambda frame: frame.max()).name == "map_frames"
