"""The dtypes of sums: what values are added up in, and what the result has."""

from __future__ import annotations

from typing import Any

import numpy as np

from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.kernels.overflow import is_long


def sum_dtypes(data: np.dtype[Any], asked: Any, n: int) -> tuple[np.dtype[Any], np.dtype[Any]]:
    """Return in what to add up `n` values, and the dtype of the result.

    Integers are added up in 64 bits, floating and complex numbers in double precision, as are
    integers of 64 bits for which a floating dtype was asked. The result
    has the dtype that NumPy's sum has, but float32 for float16, or the one asked for, in which
    every sum must fit.
    """
    if data.kind == "M":
        raise ArgumentTypeError(f"dates have no sum, but the data are {data}: subtract one of them")
    natural = np.zeros(1, data).sum().dtype
    if natural == np.float16:  # in which a sum soon is infinite
        natural = np.dtype(np.float32)
    if data.kind not in "biufc":
        return natural, natural
    _check_count(data, natural, n)
    if asked is None:
        return _exact(data, natural), natural
    try:
        dtype = np.dtype(asked)
    except TypeError as error:
        raise ArgumentTypeError(f"dtype={asked!r} is not a NumPy dtype: {error}") from None
    _check(data, natural, dtype, n)
    return _exact(data, dtype), dtype


def _exact(data: np.dtype[Any], result: np.dtype[Any]) -> np.dtype[Any]:
    """Return in what to add up."""
    if is_long(data) and result.kind in "fc":  # sums may need more than 64 bits
        return np.promote_types(result, np.float64)
    if data.kind in "biu":
        unsigned = data.kind == "u" or (data.kind == "b" and result.kind == "u")
        return np.dtype(np.uint64 if unsigned else np.int64)
    least = np.dtype(np.float64 if data.kind == "f" else np.complex128)
    return np.promote_types(data, least)  # long double stays what it is


def _check_count(data: np.dtype[Any], natural: np.dtype[Any], n: int) -> None:
    """Raise if the sum of any `n` narrow integers might not fit 64 bits.

    Those of 32 bits would have to be 2**32. Sums of 64-bit integers are looked at as they come.
    """
    if data.kind in "iu" and not is_long(data):
        least, most = n * int(np.iinfo(data).min), n * int(np.iinfo(data).max)
        if least < np.iinfo(natural).min or most > np.iinfo(natural).max:
            raise ArgumentValueError(
                f"the sum of {n} values of {data} may not fit {natural}: convert the data, "
                "array.astype('float64'), or process a part of them with roi="
            )


def _check(data: np.dtype[Any], natural: np.dtype[Any], dtype: np.dtype[Any], n: int) -> None:
    """Raise if a result of this dtype cannot hold the sum of any `n` values."""
    order = "uifc"
    least = "u" if data.kind == "b" else data.kind
    if dtype.kind not in order or order.index(dtype.kind) < order.index(least):
        raise ArgumentTypeError(
            f"dtype={dtype} cannot hold the sum of {data} data, which is {natural}: leave dtype "
            "out, or ask for an integer, floating or complex dtype that can"
        )
    if dtype.kind not in "iu":
        return
    limits = np.iinfo(dtype)
    low, high = (0, 1) if data.kind == "b" else (np.iinfo(data).min, np.iinfo(data).max)
    if dtype != natural and not (limits.min <= n * int(low) and n * int(high) <= limits.max):
        raise ArgumentValueError(
            f"dtype={dtype} cannot hold the sum of {n} values of {data}, which may be as much as "
            f"{n * int(high)}: leave dtype out for {natural}, or ask for a wider one"
        )
