"""Fixtures for the tests of the xarray accessor."""

import dask.array as da
import numpy as np
import pytest


@pytest.fixture
def array():
    """A scan of 4 by 6 positions, with all kinds of labels."""
    xr = pytest.importorskip("xarray", reason="xarray is an extra")
    values = np.random.default_rng(0).integers(0, 99, (4, 6, 8, 10))
    return xr.DataArray(
        da.from_array(values, chunks=(2, 3, 8, 10)),
        dims=("y", "x", "ky", "kx"),
        name="scan",
        attrs={"beam": 200, "units": "counts", "long_name": "electrons", "valid_max": 99},
        coords={
            "y": ("y", np.arange(4) * 0.5, {"units": "nm"}),
            "x": np.arange(6),
            "kx": ("kx", np.arange(10) - 5.0, {"units": "mrad"}),
            "thickness": (("y", "x"), np.arange(24.0).reshape(4, 6)),
            "drift": (("y", "kx"), np.arange(40.0).reshape(4, 10)),
        },
    )
