"""Check what users pass as the array and the UDFs, and say what to pass instead."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from typing import Any

import dask.array as da
import numpy as np
from dask.array.core import Array as GraphArray

from udfdask.backends.table import backend_of, fill_value, is_unknown_sparse
from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.libertem_udfs import udf_name
from udfdask.plan.recipe import Recipe
from udfdask.udf import UDF
from udfdask.udf.params import hidden_collection

_FROM_LIST = (
    "make one array of it, dask.array.stack(arrays) of dask arrays of one shape, or "
    "dask.array.from_array(numpy.array(values), chunks='auto')"
)
_FROM_GROUP = (
    "a file of several arrays; pick one with udfdask.io.open_file(path, dataset='name').array, "
    "or dask.array.from_array(group['name'])"
)


def _opened(value: Any, call: str, work: str) -> str:
    """Return what to write in place of the path of a file."""
    return (
        f"open the file, opened = udfdask.io.open_file({os.fspath(value)!r}), then "
        f"{call}(opened, {work})"
    )


_SIGNAL = ("hyperspy", "BaseSignal")

# Looked up by the package and name of a class, so that nothing is imported to recognize a value.
# The functions take the value, the function that got it, and the name of its second argument.
_REMEDIES: dict[tuple[str, str], Callable[[Any, str, str], str]] = {
    ("builtins", "str"): _opened,
    ("pathlib", "PurePath"): _opened,
    ("builtins", "list"): lambda *_: _FROM_LIST,
    ("builtins", "tuple"): lambda *_: _FROM_LIST,
    ("udfdask", "Result"): lambda value, *_: (
        f"pick one of its arrays, result[{next(iter(value), 'name')!r}]"
    ),
    ("xarray", "DataArray"): lambda value, call, work: (
        f"import udfdask.xarray, then array.udf.{call}({work}, sig_dims={value.dims[-2:]!r})"
    ),
    ("xarray", "Dataset"): lambda value, call, work: (
        "import udfdask.xarray, then pick a variable, "
        f"dataset[{next(iter(value), 'name')!r}].udf.{call}({work})"
    ),
    _SIGNAL: lambda _, call, work: f"import udfdask.hyperspy, then signal.udf.{call}({work})",
    ("zarr", "Array"): lambda *_: "dask.array.from_zarr(array) makes one, in the store's chunks",
    ("zarr", "Group"): lambda *_: _FROM_GROUP,
    ("h5py", "Dataset"): lambda value, *_: (
        f"open the file with udfdask.io.open_file({value.file.filename!r}, "
        f"dataset={value.name!r}).array, or make one with dask.array.from_array(dataset)"
    ),
    ("h5py", "Group"): lambda *_: _FROM_GROUP,
    ("dask", "Delayed"): lambda *_: "dask.array.from_delayed(value, shape, dtype) makes one",
}


def array_remedy(value: Any, call: str) -> tuple[str, str]:
    """Return the kind of a value that is not a dask array, and what to write instead.

    `call` is the name of the function that got it.
    """
    work = "func" if call == "map_frames" else "udf"
    swapped = "the array comes first, then the UDF: run_udf(array, udf)"
    if isinstance(value, (list, tuple)) and any(map(udf_name, value)):
        return "a list of UDFs", swapped
    if udf_name(value):
        return f"the UDF {(value if isinstance(value, type) else type(value)).__name__}", swapped
    if isinstance(value, (list, tuple)) and any(_known(one) == _SIGNAL for one in value):
        return "a list of signals", (
            "choose one signal of the list, as in signals[0]; then import udfdask.hyperspy, "
            f"and signals[0].udf.{call}({work})"
        )
    if known := _known(value):
        return _kind(value), _REMEDIES[known](value, call, work)
    if callable(value) and not hasattr(value, "shape"):
        return _kind(value), "a plain function runs with map_frames(array, func)"
    return _kind(value), "make one with dask.array.from_array(data, chunks='auto')"


def _known(value: Any) -> tuple[str, str] | None:
    """Return the class of a value, or a base class of it, that has a remedy."""
    names = ((cls.__module__.partition(".")[0], cls.__name__) for cls in type(value).__mro__)
    return next((name for name in names if name in _REMEDIES), None)


def _kind(value: Any) -> str:
    """Return package, class and shape of a value."""
    kind, shape = type(value), getattr(value, "shape", None)
    package = kind.__module__.partition(".")[0]
    name = kind.__qualname__ if package == "builtins" else f"{package}.{kind.__qualname__}"
    return f"{name} of shape {shape}" if isinstance(shape, tuple) else name


def check_is_array(array: Any, call: str) -> None:
    """Raise if this is not a dask array; `call` is the name of the function that got it."""
    if not isinstance(array, (da.Array, GraphArray)):
        kind, remedy = array_remedy(array, call)
        raise ArgumentTypeError(
            f"expected a dask array of shape (*nav, *sig), got {kind}: {remedy}"
        )


def check_array(array: Any) -> None:
    """Raise if this is not a dask array that can be processed."""
    check_is_array(array, "run_udf")
    if any(math.isnan(n) for n in array.shape):
        raise ArgumentValueError(
            f"the array has unknown chunk sizes, shape {array.shape}: call "
            "array.compute_chunk_sizes() first, or give the chunks where it is made"
        )
    if array.dtype.kind not in "biufcmM":
        raise ArgumentTypeError(
            f"the array has dtype {array.dtype}, expected numbers: convert it with "
            "array.astype(...), or pick one field of a structured array"
        )
    if isinstance(array._meta, np.ma.MaskedArray):
        raise ArgumentTypeError(
            "masked arrays are not supported: fill them with dask.array.ma.filled(array, value) "
            "and pass unwanted frames as roi="
        )
    _check_sparse(array)


def _check_sparse(array: da.Array) -> None:
    """Raise if the blocks are sparse in a way that cannot be processed."""
    if is_unknown_sparse(array._meta):
        raise ArgumentTypeError(
            f"the blocks are of type {type(array._meta).__name__}, a sparse format that frames "
            "cannot be read from: convert them with array.map_blocks(lambda block: block.tocsr())"
        )
    if (filled := fill_value(array._meta)) != 0:
        raise ArgumentValueError(
            f"the blocks are sparse arrays with the fill value {filled!r}, and only 0 is "
            "supported: subtract it, or make them dense with array.map_blocks(lambda block: "
            f"block.todense(), meta=numpy.empty({(0,) * array.ndim}, array.dtype))"
        )


def check_matrix_rows(array: da.Array, sig_dims: int) -> None:
    """Raise if the blocks are sparse matrices and a frame is not one row of them."""
    if backend_of(array._meta).is_matrix and (array.ndim, sig_dims) != (2, 1):
        raise ArgumentValueError(
            f"the blocks are matrices of type {type(array._meta).__name__}, in which each row is a "
            f"frame: pass an array of two dimensions and sig_dims=1, not {array.ndim} dimensions "
            f"and sig_dims={sig_dims}; sparse.GCXS keeps the shape of scan and frames"
        )


def check_dtypes(recipe: Recipe) -> None:
    """Raise if a UDF would be given a dtype in an array backend that does not have it."""
    for udf in recipe.udfs:
        for dtype in (udf.input_dtype, recipe.dtype):
            udf.backend.dense.check_dtype(dtype)
        if not udf.backend.holds(udf.input_dtype):
            raise ArgumentTypeError(
                f"{udf.name} needs data in {udf.backend.name}, which has no dtype "
                f"{udf.input_dtype}: return another dtype from get_preferred_input_dtype(), or "
                "restrict backends="
            )


def check_sig_dims(sig_dims: Any, ndim: int) -> None:
    """Raise if this is not a possible number of signal axes."""
    if isinstance(sig_dims, bool) or not isinstance(sig_dims, (int, np.integer)):
        names = (sig_dims,) if isinstance(sig_dims, str) else sig_dims
        hint = ""
        if isinstance(names, (list, tuple)) and any(isinstance(name, str) for name in names):
            hint = (
                ": only a DataArray has names, import udfdask.xarray, then "
                f"data_array.udf.run_udf(udf, sig_dims={sig_dims!r})"
            )
        raise ArgumentTypeError(
            "sig_dims must be an integer, the number of trailing signal axes, not "
            f"{sig_dims!r}{hint}"
        )
    if not 1 <= sig_dims <= ndim:
        meant = "; if its axis is that of a spectrum, write sig_dims=1" if ndim == 1 else ""
        raise ArgumentValueError(
            f"sig_dims must be between 1 and {ndim}, the number of axes of the array, "
            f"not {sig_dims} (2 if it is not given){meant}"
        )


def check_udfs(udfs: Any) -> None:
    """Raise if these are not UDF instances, or would be others in tasks."""
    if len(udfs) == 0:
        raise ArgumentValueError("expected a UDF or a list of UDFs, got an empty list")
    for udf in udfs:
        if isinstance(udf, type) and (name := udf_name(udf)):
            raise ArgumentTypeError(
                f"expected an instance of a UDF, got the class {name}: write {name}(...)"
            )
        if not isinstance(udf, UDF):
            raise ArgumentTypeError(
                f"expected a UDF or a list of UDFs, got {type(udf).__name__}: subclass "
                "udfdask.UDF, or run a plain function with map_frames"
            )
        for name, value in udf._kwargs.items():
            if kind := hidden_collection(value):
                raise ArgumentTypeError(
                    f"parameter {name!r} of {type(udf).__name__} has a dask collection inside of a "
                    f"{kind}, where it would be computed again for each frame: pass it as a "
                    "separate parameter, in a list, tuple or dictionary, or compute it first"
                )
        from udfdask.plan.lost_attributes import find_lost_attribute  # with a run, not an import

        if lost := find_lost_attribute(udf):
            raise ArgumentValueError(f"{type(udf).__name__}: {lost}")


def check_masks_and_targets(udfs: Sequence[UDF], sources: Sequence[str]) -> None:
    """Raise if masks need an accessor, or if a UDF would write a file of the data."""
    for udf in udfs:
        if udf._mask_parameter is not None:
            from udfdask.masks.given_masks import check_is_read  # few UDFs have masks

            check_is_read(udf._kwargs.get(udf._mask_parameter))
    targets = [target for udf in udfs for target in udf._targets(sources)]
    if targets:
        from udfdask.writing.targets import check_apart  # few runs need it

        check_apart(targets)
