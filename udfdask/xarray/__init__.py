"""Importing this module adds the accessor `udf` to `xarray.DataArray` and `xarray.Dataset`."""

import warnings
from typing import TYPE_CHECKING

import udfdask.results.labels  # noqa: F401  # raises a helpful error if xarray is missing
from udfdask.xarray.accessor import DataArrayUDF, DatasetUDF
from udfdask.xarray.progressive import LabeledIterator, LabeledSnapshot

_EARLIER_NAMES = {"LabelledIterator": LabeledIterator, "LabelledSnapshot": LabeledSnapshot}

__all__ = ["DataArrayUDF", "DatasetUDF", "LabeledIterator", "LabeledSnapshot"]


if not TYPE_CHECKING:  # type checkers know only the new names

    def __getattr__(name: str) -> type:
        if name not in _EARLIER_NAMES:
            raise AttributeError(f"module 'udfdask.xarray' has no attribute {name!r}")
        new = _EARLIER_NAMES[name]
        warnings.warn(
            f"udfdask.xarray.{name} is deprecated: use {new.__name__}",
            DeprecationWarning,
            stacklevel=2,
        )
        return new
