"""Kinds of lazy arrays that UDFs run over; the laws hold for each of them (fixture `kind`)."""

from dataclasses import dataclass
from typing import Any

import dask.array as da
import numpy as np
import pytest

import udfdask as ud

RESULTS = ["dask", "dask_array"]
"""Kinds of which a run gives a `Result`."""


@dataclass(frozen=True)
class Kind:
    """Arrays of a module, inside of DataArrays if these have labels."""

    module: Any = da
    labeled: bool = False

    def from_array(self, data, chunks):
        meta = np.empty((0,) * data.ndim, data.dtype)
        return self.wrap(self.module.from_array(data, chunks=chunks, meta=meta))

    def wrap(self, array):
        if not self.labeled:
            return array
        import xarray as xr

        return xr.DataArray(array, dims=[f"axis {k}" for k in range(array.ndim)])

    def plain(self, array):
        """The array of `module` again."""
        return array.data if self.labeled else array

    def run(self, array, udf, sig_dims=2, **options):
        """Results of `run_udf`, or Datasets of the accessor."""
        if self.labeled:
            return array.udf.run_udf(udf, sig_dims, **options)
        return ud.run_udf(array, udf, sig_dims=sig_dims, **options)

    def is_nav(self, result, name):
        """Whether a result has navigation axes."""
        if self.labeled:
            return "axis 0" in result[name].dims
        return result.buffers[name].kind == "nav"

    def others(self, result, name):
        """What a `Result` has besides its arrays: a Dataset has nothing."""
        return [] if self.labeled else [result.raw[name], result.valid_mask[name]]


DASK = Kind()


@pytest.fixture
def registered():
    """dask-array makes the chunks of xarray."""
    made_by = pytest.importorskip("dask_array.xarray", reason="it is optional")
    from xarray.namedarray.parallelcompat import list_chunkmanagers

    managers = list_chunkmanagers()
    before = dict(managers)
    made_by.register()
    yield
    managers.clear()
    managers.update(before)


@pytest.fixture(params=["dask", "DataArray", "registered", "dask_array"])
def kind(request):
    """dask arrays, DataArrays of them, and both with arrays of dask-array."""
    labeled = request.param in ("DataArray", "registered")
    if labeled:
        pytest.importorskip("udfdask.xarray", reason="xarray is an extra")
    if request.param == "registered":
        request.getfixturevalue("registered")
    if request.param in ("dask", "DataArray"):
        return Kind(labeled=labeled)
    return Kind(pytest.importorskip("dask_array", reason="it is optional"), labeled)
