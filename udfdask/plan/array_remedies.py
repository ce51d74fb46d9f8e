"""Tells what to write in place of something that is not a dask array."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from udfdask.udf import UDF

Remedy = Callable[[Any, str], str]


def array_remedy(value: Any, call: str) -> tuple[str, str]:
    """Take what was passed as the array, and the function; return its kind and what to write."""
    if isinstance(value, (list, tuple)):
        if any(_is_udf(item) for item in value):
            return "a list of UDFs", _swapped(value, call)
        return _kind(value), _of_list(value, call)
    if _is_udf(value):
        cls = value if isinstance(value, type) else type(value)
        return f"the UDF {cls.__name__}", _swapped(value, call)
    for cls in type(value).__mro__:
        remedy = _REMEDIES.get((cls.__module__.partition(".")[0], cls.__name__))
        if remedy is not None:
            return _kind(value), remedy(value, call)
    if isinstance(value, os.PathLike):
        return _kind(value), _of_path(value, call)
    if hasattr(getattr(value, "data", None), "__dask_graph__"):
        return _kind(value), "pass its .data"
    if callable(value) and not hasattr(value, "shape"):
        return _kind(value), "a plain function runs with map_frames(array, func)"
    return _kind(value), _of_numbers(value, call)


def _kind(value: Any) -> str:
    """Return package, class and shape of something."""
    kind, shape = type(value), getattr(value, "shape", None)
    package = kind.__module__.partition(".")[0]
    name = kind.__qualname__ if package == "builtins" else f"{package}.{kind.__qualname__}"
    return f"{name} of shape {shape}" if isinstance(shape, tuple) else name


def _is_udf(value: Any) -> bool:
    """Return whether this is a UDF or the class of one."""
    return isinstance(value, UDF) or (isinstance(value, type) and issubclass(value, UDF))


def _swapped(value: Any, call: str) -> str:
    if call == "map_frames":
        return f"a UDF runs with run_udf(array, udf), a function with {_call(call, 'array')}"
    return f"the array comes first, then the UDF: {_call(call, 'array')}"


def _of_numbers(value: Any, call: str) -> str:
    return "make one with dask.array.from_array(data, chunks='auto')"


def _of_list(value: Any, call: str) -> str:
    return (
        "make one array of it, dask.array.stack(arrays) of dask arrays of one shape, or "
        "dask.array.from_array(numpy.array(values), chunks='auto')"
    )


def _of_path(value: Any, call: str) -> str:
    path = os.fspath(value)
    return (
        f"open the file, opened = udfdask.io.open_file({path!r}), then "
        f"{_call(call, 'opened.array')[:-1]}, sig_dims=opened.sig_dims)"
    )


def _of_opened(value: Any, call: str) -> str:
    return f"pass its array, {_call(call, 'opened.array')[:-1]}, sig_dims={value.sig_dims})"


def _of_data_array(value: Any, call: str) -> str:
    return (
        f"import udfdask.xarray, then array.udf.{_call(call)[:-1]}, "
        f"sig_dims={tuple(value.dims[-2:])!r})"
    )


def _of_dataset(value: Any, call: str) -> str:
    name = next(iter(value.data_vars), "name")
    return f"import udfdask.xarray, then pick a variable, dataset[{name!r}].udf.{_call(call)}"


def _of_signal(value: Any, call: str) -> str:
    return f"import udfdask.hyperspy, then signal.udf.{_call(call)}"


def _of_zarr(value: Any, call: str) -> str:
    return "dask.array.from_zarr(array) makes one, in the chunks of the store"


def _of_hdf5(value: Any, call: str) -> str:
    return (
        f"open the file with udfdask.io.open_file({value.file.filename!r}, "
        f"dataset={value.name!r}).array, or make one with dask.array.from_array(dataset)"
    )


def _of_group(value: Any, call: str) -> str:
    return (
        "a file of several arrays; pick one with udfdask.io.open_file(path, dataset='name').array, "
        "or dask.array.from_array(group['name'])"
    )


def _of_result(value: Any, call: str) -> str:
    name = next(iter(value), "name")
    return f"pick one of its arrays, result[{name!r}]"


def _of_delayed(value: Any, call: str) -> str:
    return "dask.array.from_delayed(value, shape, dtype) makes one"


def _call(call: str, array: str | None = None) -> str:
    """Return the call of a function, of a method if there is no array to name."""
    work = "func" if call == "map_frames" else "udf"
    if array is None:
        return f"{call}({work})"
    return f"{call}({array}, {work})"


_REMEDIES: dict[tuple[str, str], Remedy] = {
    ("builtins", "str"): _of_path,
    ("udfdask", "OpenedFile"): _of_opened,
    ("udfdask", "Result"): _of_result,
    ("xarray", "DataArray"): _of_data_array,
    ("xarray", "Dataset"): _of_dataset,
    ("hyperspy", "BaseSignal"): _of_signal,
    ("zarr", "Array"): _of_zarr,
    ("zarr", "Group"): _of_group,
    ("h5py", "Dataset"): _of_hdf5,
    ("h5py", "Group"): _of_group,
    ("dask", "Delayed"): _of_delayed,
}
"""By package and name of a class: nothing is imported to recognize what the user has."""
