"""Say what to write instead of something that is not a dask array."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from udfdask.libertem_udfs import udf_name

Remedy = str | Callable[[Any, str], str]
"""A text, or a function of the value and of the name of the function that got it."""

_FROM_NUMBERS = "make one with dask.array.from_array(data, chunks='auto')"
_FROM_LIST = (
    "make one array of it, dask.array.stack(arrays) of dask arrays of one shape, or "
    "dask.array.from_array(numpy.array(values), chunks='auto')"
)
_FROM_GROUP = (
    "a file of several arrays; pick one with udfdask.io.open_file(path, dataset='name').array, "
    "or dask.array.from_array(group['name'])"
)


def array_remedy(value: Any, call: str, sig_dims: Any = None) -> tuple[str, str]:
    """Return the kind of a value that is not a dask array, and what to write instead.

    `call` is the name of the function that got it, and `sig_dims` its argument.
    """
    if isinstance(value, (list, tuple)):
        if any(udf_name(item) for item in value):
            return "a list of UDFs", _swapped(call)
        if any(_is_signal(item) for item in value):
            return "a list of signals", (
                "choose one signal of the list, as in signals[0]; then import udfdask.hyperspy, "
                f"and signals[0].udf.{_call(call)}"
            )
        return _kind(value), _FROM_LIST
    if udf_name(value):
        cls = value if isinstance(value, type) else type(value)
        return f"the UDF {cls.__name__}", _swapped(call)
    for cls in type(value).__mro__:
        remedy = _REMEDIES.get((cls.__module__.partition(".")[0], cls.__name__))
        if remedy is _from_data_array:
            return _kind(value), _from_data_array(value, call, sig_dims)
        if remedy is not None:
            return _kind(value), remedy if isinstance(remedy, str) else remedy(value, call)
    if isinstance(value, os.PathLike):
        return _kind(value), _from_path(value, call)
    if hasattr(getattr(value, "data", None), "__dask_graph__"):
        return _kind(value), "pass its .data"
    if callable(value) and not hasattr(value, "shape"):
        return _kind(value), "a plain function runs with map_frames(array, func)"
    return _kind(value), _FROM_NUMBERS


def _kind(value: Any) -> str:
    """Return package, class and shape of a value."""
    kind, shape = type(value), getattr(value, "shape", None)
    package = kind.__module__.partition(".")[0]
    name = kind.__qualname__ if package == "builtins" else f"{package}.{kind.__qualname__}"
    return f"{name} of shape {shape}" if isinstance(shape, tuple) else name


def _is_signal(value: Any) -> bool:
    """Return whether this is a signal of HyperSpy."""
    return any(
        cls.__module__.startswith("hyperspy.") and cls.__name__ == "BaseSignal"
        for cls in type(value).__mro__
    )


def _swapped(call: str) -> str:
    if call == "map_frames":
        return f"a UDF runs with run_udf(array, udf), a function with {_call(call, 'array')}"
    return f"the array comes first, then the UDF: {_call(call, 'array')}"


def _from_path(value: Any, call: str) -> str:
    return (
        f"open the file, opened = udfdask.io.open_file({os.fspath(value)!r}), then "
        f"{_call(call, 'opened')}"
    )


def _from_data_array(value: Any, call: str, sig_dims: Any = None) -> str:
    n = 2 if isinstance(sig_dims, bool) or not isinstance(sig_dims, (int, np.integer)) else sig_dims
    names = tuple(value.dims[-n:]) if n > 0 else ()
    if isinstance(sig_dims, (str, tuple, list)) and not {*_as_names(sig_dims)} - {*value.dims}:
        names = _as_names(sig_dims)
    method = _call(call, option=f"sig_dims={(names[0] if len(names) == 1 else names)!r}")
    return f"import udfdask.xarray, then array.udf.{method}"


def _as_names(sig_dims: Any) -> tuple[Any, ...]:
    """Return one name of a dimension, or several, as a tuple."""
    return (sig_dims,) if isinstance(sig_dims, str) else tuple(sig_dims)


def _from_dataset(value: Any, call: str) -> str:
    name = next(iter(value.data_vars), "name")
    return f"import udfdask.xarray, then pick a variable, dataset[{name!r}].udf.{_call(call)}"


def _from_signal(value: Any, call: str) -> str:
    return f"import udfdask.hyperspy, then signal.udf.{_call(call)}"


def _from_hdf5(value: Any, call: str) -> str:
    return (
        f"open the file with udfdask.io.open_file({value.file.filename!r}, "
        f"dataset={value.name!r}).array, or make one with dask.array.from_array(dataset)"
    )


def _from_result(value: Any, call: str) -> str:
    return f"pick one of its arrays, result[{next(iter(value), 'name')!r}]"


def _call(call: str, array: str = "", option: str = "") -> str:
    """Return the call of a function, or of a method if there is no array to name."""
    function = "func" if call == "map_frames" else "udf"
    return f"{call}({', '.join(filter(None, (array, function, option)))})"


# Looked up by the package and name of a class, so that nothing is imported to recognize a value.
_REMEDIES: dict[tuple[str, str], Remedy] = {
    ("builtins", "str"): _from_path,
    ("udfdask", "Result"): _from_result,
    ("xarray", "DataArray"): _from_data_array,
    ("xarray", "Dataset"): _from_dataset,
    ("hyperspy", "BaseSignal"): _from_signal,
    ("zarr", "Array"): "dask.array.from_zarr(array) makes one, in the chunks of the store",
    ("zarr", "Group"): _FROM_GROUP,
    ("h5py", "Dataset"): _from_hdf5,
    ("h5py", "Group"): _FROM_GROUP,
    ("dask", "Delayed"): "dask.array.from_delayed(value, shape, dtype) makes one",
}
