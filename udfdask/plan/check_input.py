"""Check what users pass as the array and the UDFs, and say what to pass instead."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any

import dask.array as da
import numpy as np
from dask.array.core import Array as GraphArray

from udfdask.backends.table import backend_of, fill_value, is_unknown_sparse
from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.plan.parameters import find_lost_attribute
from udfdask.plan.recipe import Recipe
from udfdask.udf import UDF
from udfdask.udf.libertem_udfs import udf_name
from udfdask.udf.params import hidden_collection


def check_is_array(array: Any, call: str, work: str = "udf") -> None:
    """Raise if this is not a dask array; `call` is the function that got it, with a UDF `work`."""
    if da.Array is not GraphArray or not isinstance(array, GraphArray):
        shape, kind = getattr(array, "shape", None), type(array)
        name = f"{kind.__module__.partition('.')[0]}.{kind.__qualname__}".removeprefix("builtins.")
        which = f" of shape {shape}" if isinstance(shape, tuple) else ""
        raise ArgumentTypeError(
            f"expected a dask array of shape (*nav, *sig), got {name}{which}: "
            f"{_remedy(array, call, work)}"
        )


def _remedy(value: Any, call: str, work: str) -> str:
    """Return what to write instead of a value that is not a dask array."""
    work = "func" if call == "map_frames" else work
    many = isinstance(value, (list, tuple))
    if da.Array is not GraphArray:
        return (
            "dask makes arrays as expressions, because its option array.query-planning is on: set "
            "it to False before dask.array is imported"
        )
    if any(map(udf_name, value if many else (value,))):
        return "the array comes first, then the UDF: run_udf(array, udf)"
    if any(hasattr(one, "axes_manager") for one in (value if many else ())):
        return f"choose one signal and import udfdask.hyperspy: signals[0].udf.{call}({work})"
    if many:
        return "make one array of it, dask.array.stack(arrays) of dask arrays of one shape"
    if isinstance(value, (str, os.PathLike)):
        return (
            f"open the file, opened = udfdask.io.open_file({os.fspath(value)!r}), then "
            f"{call}(opened, {work})"
        )
    if hasattr(value, "axes_manager"):
        return f"import udfdask.hyperspy, then signal.udf.{call}({work})"
    if type(value).__module__.startswith("xarray"):
        picked = "array" if hasattr(value, "dtype") else "dataset['name']"
        return f"import udfdask.xarray, then {picked}.udf.{call}({work}, sig_dims=('ky', 'kx'))"
    if hasattr(value, "keys"):
        return "pick one of its arrays by its name"
    if callable(value) and not hasattr(value, "shape"):
        return "a plain function runs with map_frames(array, func)"
    return "make one with dask.array.from_array(data, chunks='auto')"


def check_array(array: Any) -> None:
    """Raise if this is not a dask array that can be processed."""
    check_is_array(array, "run_udf")
    meta = array._meta
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
    if isinstance(meta, np.ma.MaskedArray):
        raise ArgumentTypeError(
            "masked arrays are not supported: fill them with dask.array.ma.filled(array, value) "
            "and pass unwanted frames as roi="
        )
    if is_unknown_sparse(meta):
        raise ArgumentTypeError(
            f"the blocks are of type {type(meta).__name__}, a sparse format that frames cannot be "
            "read from: convert them with array.map_blocks(lambda block: block.tocsr())"
        )
    if (filled := fill_value(meta)) != 0:
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
        raise ArgumentTypeError(
            f"sig_dims must be an integer, the number of trailing signal axes, not {sig_dims!r}; "
            "only a DataArray has names of axes: import udfdask.xarray, then "
            "data_array.udf.run_udf(udf, sig_dims=names)"
        )
    if not 1 <= sig_dims <= ndim:
        raise ArgumentValueError(
            f"sig_dims must be between 1 and {ndim}, the number of axes of the array, not "
            f"{sig_dims} (2 if it is not given); for spectra, write sig_dims=1"
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
        from udfdask.base.targets import check_apart  # few runs need it

        check_apart(targets)
