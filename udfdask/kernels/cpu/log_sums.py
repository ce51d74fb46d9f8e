"""Sums of logarithms, as logarithms of products.

A product is stored as a number between 1 and 2 and a power of two. This needs a multiplication per
value and a single logarithm at the end; a logarithm per value would take ten times as long.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from udfdask.base.types import AnyArray
from udfdask.kernels.numba_internals.compile import inner_kernel, kernel
from udfdask.kernels.numba_internals.reading import plus, times
from udfdask.kernels.numba_internals.rows import as_rows, swapped, wider

BLOCK = 1024
"""Pixels at a time: their products stay in the first-level cache."""

SAFE = {"u1": 64, "i1": 64, "u2": 32, "i2": 32, "u4": 16, "i4": 16, "u8": 8, "i8": 8, "f4": 4}
"""Number of factors whose product cannot overflow, by dtype; one for other dtypes."""


def multiply_heights(
    tile: AnyArray, mantissa: AnyArray, exponent: AnyArray, pending: int = 0
) -> int:
    """Multiply the products with (frame - min(frame) + 1) for each frame of a tile.

    The tile consists of full frames, shape (n, *sig). A product is ``mantissa * 2**exponent``,
    float64 and int64, both of shape `sig` and contiguous. `pending` is the number of factors since
    the mantissa was between 1 and 2; the new number is returned.
    """
    if not tile.size:
        return pending
    if wider(tile.dtype) is None:
        tile = tile.astype(np.float64)
    rows = as_rows(tile)
    dtype = rows.flat.dtype
    lowest: AnyArray
    if rows.swap and dtype.kind in "iu":  # NumPy takes three times as long for the other byte order
        lowest = np.empty(len(tile), dtype)
        find_lowest(*rows, lowest)
    else:
        lowest = tile.reshape((len(tile), -1)).min(axis=1)
    # 8: the product of four heights has 32 bits; 16: that of two; None: heights are floats
    bits_each = 8 * dtype.itemsize if dtype.kind in "iu" and dtype.itemsize <= 2 else None
    lowest = lowest.astype(np.float64 if bits_each is None else np.int64)
    safe = SAFE.get(f"{dtype.kind}{dtype.itemsize}", 1)
    factors = mantissa.reshape(-1)
    products = factors, factors.view(np.int64), exponent.reshape(-1)
    count: int = multiply_columns(tuple(rows), lowest, bits_each, safe, pending, products)
    return count


def normalize_products(mantissa: AnyArray, exponent: AnyArray) -> None:
    """Bring each finite mantissa between 1 and 2."""
    normalize(mantissa.reshape(-1).view(np.int64), exponent.reshape(-1))


def log_of(mantissa: AnyArray, exponent: AnyArray) -> AnyArray:
    """Return the natural logarithm of products, float64."""
    logs: AnyArray = np.log(mantissa)
    logs += exponent * math.log(2)
    return logs


@kernel
def find_lowest(
    flat: AnyArray, count: int, step: int, width: int, swap: Any, lowest: AnyArray
) -> None:
    """Write the smallest value of each row of integers."""
    for i in range(count):
        row = flat[i * step : i * step + width]
        smallest = swapped(row[0], swap)
        for j in range(1, width):
            smallest = min(swapped(row[j], swap), smallest)
        lowest[i] = smallest


@kernel
def multiply_columns(
    rows: Any, lowest: AnyArray, bits_each: Any, safe: int, pending: int, products: Any
) -> int:
    """Multiply with (row - lowest + 1) for every row; `bits` is a view of the mantissa as int64.

    Normalize after at most `safe` factors. Return the number of factors since the last time.
    """
    flat, count, step, width, swap = rows
    mantissa, bits, exponent = products
    fours = count - count % 4 if safe >= 4 else 0
    now = pending
    for start in range(0, width, BLOCK):
        stop = min(start + BLOCK, width)
        n = stop - start
        product = mantissa[start:stop]
        now = pending
        for i in range(0, fours, 4):
            if now + 4 > safe:
                normalize(bits[start:stop], exponent[start:stop])
                now = 0
            k = i * step + start
            a, b = flat[k : k + n], flat[k + step : k + step + n]
            c, d = flat[k + 2 * step : k + 2 * step + n], flat[k + 3 * step : k + 3 * step + n]
            _multiply_four(product, swap, bits_each, (a, b, c, d), lowest[i : i + 4])
            now += 4
        for i in range(fours, count):
            if now + 1 > safe:
                normalize(bits[start:stop], exponent[start:stop])
                now = 0
            k = i * step + start
            _multiply_one(product, swap, flat[k : k + n], lowest[i])
            now += 1
    return now


@kernel
def normalize(bits: AnyArray, exponent: AnyArray) -> None:
    """Move the powers of two of positive float64 numbers, given as bits, to `exponent`.

    Infinity and NaN do not change.
    """
    for j in range(len(bits)):
        value = bits[j]
        power = (value >> 52) & 0x7FF  # the NaN of -inf - -inf has its sign bit set
        finite = power != 0x7FF
        exponent[j] += (power - 1023) if finite else 0
        bits[j] = ((value & 0xFFFFFFFFFFFFF) | (1023 << 52)) if finite else value


@inner_kernel
def _multiply_one(product: AnyArray, swap: Any, a: AnyArray, low: float) -> None:
    """Multiply with (row - low + 1)."""
    for j in range(len(product)):
        product[j] *= (np.float64(swapped(a[j], swap)) - low) + 1.0


@inner_kernel
def _multiply_four(product: AnyArray, swap: Any, bits_each: Any, four: Any, low: AnyArray) -> None:
    """Multiply with (row - low + 1) for four rows, each with its own `low`."""
    a, b, c, d = four
    if bits_each is None:
        p, q, r, s = low[0], low[1], low[2], low[3]
        for j in range(len(product)):
            t, u = np.float64(swapped(a[j], swap)), np.float64(swapped(b[j], swap))
            v, w = np.float64(swapped(c[j], swap)), np.float64(swapped(d[j], swap))
            product[j] *= ((t - p + 1.0) * (u - q + 1.0)) * ((v - r + 1.0) * (w - s + 1.0))
        return
    # in 32 bits, a vector holds twice as many values as in double precision
    for j in range(len(product)):
        ab = _product_less_one(_height(a, swap, low, 0, j), _height(b, swap, low, 1, j))
        cd = _product_less_one(_height(c, swap, low, 2, j), _height(d, swap, low, 3, j))
        if bits_each == 8:
            product[j] *= np.float64(_product_less_one(ab, cd)) + 1.0
        else:
            product[j] *= (np.float64(ab) + 1.0) * (np.float64(cd) + 1.0)


@inner_kernel
def _height(row: AnyArray, swap: Any, low: AnyArray, k: int, j: int) -> Any:
    """Return row[j] - low[k], uint32."""
    return plus(np.uint32(swapped(row[j], swap)), np.uint32(-low[k]))


@inner_kernel
def _product_less_one(x: Any, y: Any) -> Any:
    """Return (x + 1) * (y + 1) - 1, which fits 32 bits where the product itself does not."""
    return plus(times(x, y), plus(x, y))
