"""The accessor `udf` of DataArrays and Datasets."""

from __future__ import annotations

from collections.abc import Hashable

import xarray as xr

from udfdask.errors import ArgumentValueError
from udfdask.xarray.from_dataarray import choose_variable
from udfdask.xarray.methods import Runs, SigDims


@xr.register_dataarray_accessor("udf")
class DataArrayUDF(Runs):
    """Runs UDFs over a DataArray, as ``array.udf``, after ``import udfdask.xarray``.

    ``sig_dims=("ky", "kx")`` names the signal dimensions; all others are navigation dimensions. If
    signal dimensions are not the last ones, axes are moved, lazily.

    Results are lazy if the DataArray has chunks. Otherwise the data get chunks and are processed
    immediately, as in xarray's own functions.

    Parameters
    ----------
    array : xarray.DataArray
        The data.

    Examples
    --------
    >>> import dask.array as da, udfdask.xarray, xarray as xr
    >>> from udfdask.udfs import SumUDF
    >>> array = xr.DataArray(
    ...     da.ones((4, 6, 8, 8), chunks=(2, 6, 8, 8)),
    ...     dims=("y", "x", "ky", "kx"),
    ...     coords={"kx": ("kx", range(-4, 4), {"units": "mrad"})},
    ... )
    >>> dataset = array.udf.run_udf(SumUDF(), sig_dims=("ky", "kx"))
    >>> dataset["intensity"].sel(kx=-2, ky=0).compute().item()
    24.0
    """

    def __init__(self, array: xr.DataArray) -> None:
        self._array = array

    def __repr__(self) -> str:
        name = "" if self._array.name is None else f"{self._array.name!r} "
        sizes = ", ".join(f"{dim}: {size}" for dim, size in self._array.sizes.items())
        return f"<DataArrayUDF of {name}({sizes})>"

    def _variable(self, sig_dims: SigDims | None) -> xr.DataArray:
        return self._array


@xr.register_dataset_accessor("udf")
class DatasetUDF(Runs):
    """Runs UDFs over a variable of a Dataset, as ``dataset.udf``, after ``import udfdask.xarray``.

    The methods are those of `DataArrayUDF`. They run over the variable that fits the signal
    dimensions: it has all of them and at least one navigation dimension. If several variables fit,
    choose one, ``dataset.udf["name"]``.

    Parameters
    ----------
    dataset : xarray.Dataset
        A Dataset with the data among its variables.

    Examples
    --------
    >>> import dask.array as da, udfdask.xarray, xarray as xr
    >>> from udfdask.udfs import SumSigUDF
    >>> dataset = xr.Dataset({"scan": (("y", "x", "ky", "kx"), da.ones((2, 3, 4, 4)))})
    >>> dataset.udf.run_udf(SumSigUDF(), sig_dims=("ky", "kx"))["intensity"].shape
    (2, 3)
    >>> dataset.udf["scan"].run_udf(SumSigUDF(), sig_dims=("ky", "kx"))["intensity"].shape
    (2, 3)
    """

    def __init__(self, dataset: xr.Dataset) -> None:
        self._dataset = dataset

    def __repr__(self) -> str:
        return f"<DatasetUDF of the variables {list(self._dataset.data_vars)}>"

    def __getitem__(self, name: Hashable) -> DataArrayUDF:
        if name not in self._dataset.data_vars:
            raise ArgumentValueError(
                f"the Dataset has no variable {name!r}, only {list(self._dataset.data_vars)}"
            )
        return DataArrayUDF(self._dataset[name])

    def _variable(self, sig_dims: SigDims | None) -> xr.DataArray:
        return choose_variable(self._dataset, sig_dims)
