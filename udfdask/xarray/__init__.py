"""UDFs over labelled data: importing this adds `udf` to `xarray.DataArray` and `xarray.Dataset`."""

from udfdask.xarray.accessors import DataArrayUDF, DatasetUDF
from udfdask.xarray.watching import LabelledIterator, LabelledSnapshot

__all__ = ["DataArrayUDF", "DatasetUDF", "LabelledIterator", "LabelledSnapshot"]
