"""UDFs over labelled data: importing this adds `udf` to `xarray.DataArray` and `xarray.Dataset`."""

import udfdask.results.labels  # noqa: F401, which says what to do if xarray is missing
from udfdask.xarray.accessor import DataArrayUDF, DatasetUDF
from udfdask.xarray.progressive import LabelledIterator, LabelledSnapshot

__all__ = ["DataArrayUDF", "DatasetUDF", "LabelledIterator", "LabelledSnapshot"]
