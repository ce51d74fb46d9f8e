"""Choose the dtype in which values are added up, and the dtype of the sum."""

from __future__ import annotations

from typing import Any

import numpy as np

from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.kernels.overflow import is_long
from udfdask.masks import checks
from udfdask.masks.dense_product import LARGEST, highest


def sum_dtypes(data: np.dtype[Any], asked: Any, n: int) -> tuple[np.dtype[Any], np.dtype[Any]]:
    """Return the dtype in which to add up `n` values, and the dtype of the result.

    Integers are added up in 64 bits, floating and complex numbers in double precision. If a
    floating dtype was requested, 64-bit integers are added up in double precision too. The result
    has the requested dtype, which must be able to hold every sum, or the dtype of NumPy's sum, but
    int64 instead of uint64 if every sum fits, and float32 for float16.
    """
    if data.kind == "M":
        raise ArgumentTypeError(
            f"dates have no sum, but the data are {data}: subtract a date first"
        )
    natural = np.zeros(1, data).sum().dtype
    if natural == np.float16:  # its largest number is 65504
        natural = np.dtype(np.float32)
    if data.kind not in "biufc":
        return natural, natural
    _check_count(data, natural, n)
    natural = signed_if_fits(natural, data, n)
    if asked is None:
        return _exact(data, natural), natural
    dtype = checks.dtype(asked)
    _check(data, natural, dtype, n)
    return _exact(data, dtype), dtype


def signed_if_fits(dtype: np.dtype[Any], data: np.dtype[Any], weight: float) -> np.dtype[Any]:
    """Return int64 instead of uint64 if no sum of data is too large: differences then do not wrap.

    `weight` is the number of values that are added up, or the sum of their weights.
    """
    fits = dtype == np.uint64 and max(1, weight) * highest(data) <= LARGEST
    return np.dtype(np.int64) if fits else dtype


def as_added_up(total: Any, dtype: np.dtype[Any]) -> Any:
    """Return sums in int64 as a view in uint64, if kernels add them up in the unsigned `dtype`."""
    return total.view(np.uint64) if dtype.kind == "u" and total.dtype == np.int64 else total


def _exact(data: np.dtype[Any], result: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype in which to add up."""
    if is_long(data) and result.kind in "fc":  # sums can need more than 64 bits
        return np.promote_types(result, np.float64)
    if data.kind in "biu":
        if result == np.int64:  # `as_added_up`
            return result
        unsigned = data.kind == "u" or (data.kind == "b" and result.kind == "u")
        return np.dtype(np.uint64 if unsigned else np.int64)
    least = np.dtype(np.float64 if data.kind == "f" else np.complex128)
    return np.promote_types(data, least)  # keeps long double


def _check_count(data: np.dtype[Any], natural: np.dtype[Any], n: int) -> None:
    """Raise if the sum of `n` integers of at most 32 bits can overflow 64 bits.

    This takes at least 2**32 of them. Sums of 64-bit integers are checked while they are computed.
    """
    if data.kind in "iu" and not is_long(data):
        least, most = n * int(np.iinfo(data).min), n * int(np.iinfo(data).max)
        if least < np.iinfo(natural).min or most > np.iinfo(natural).max:
            raise ArgumentValueError(
                f"the sum of {n} values of {data} may not fit {natural}: convert the data with "
                "array.astype('float64'), or process a part of them with roi="
            )


def _check(data: np.dtype[Any], natural: np.dtype[Any], dtype: np.dtype[Any], n: int) -> None:
    """Raise unless a dtype can hold every sum of `n` values."""
    order = "uifc"
    least = "u" if data.kind == "b" else data.kind
    if dtype.kind not in order or order.index(dtype.kind) < order.index(least):
        raise ArgumentTypeError(
            f"dtype={dtype} cannot hold the sum of {data} data, which is {natural}: omit dtype"
        )
    if dtype.kind not in "iu":
        return
    limits = np.iinfo(dtype)
    low, high = (0, 1) if data.kind == "b" else (np.iinfo(data).min, np.iinfo(data).max)
    if dtype != natural and not (limits.min <= n * int(low) and n * int(high) <= limits.max):
        raise ArgumentValueError(
            f"dtype={dtype} cannot hold the sum of {n} values of {data}, which can be as large as "
            f"{n * int(high)}: omit dtype to get {natural}"
        )
