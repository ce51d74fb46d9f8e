"""Importing this module adds the accessor `udf` to `xarray.DataArray`."""

import udfdask.results.layout  # noqa: F401  # raises a helpful error if xarray is missing
from udfdask.xarray.accessor import DataArrayUDF

__all__ = ["DataArrayUDF"]
