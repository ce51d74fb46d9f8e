"""Sums of logarithms, as logarithms of products.

A product is kept as a number within 1 and 2 and a power of two. It takes a multiplication for each
value, and a single logarithm at the end, which would take ten times as long.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from udfdask.kernels.cpu.compile import inner_kernel, kernel
from udfdask.kernels.cpu.rows import as_rows, turned, wider
from udfdask.types import AnyArray

BLOCK = 1024
"""Pixels whose products are held in the nearest cache at a time."""

SAFE = {"u1": 64, "i1": 64, "u2": 32, "i2": 32, "u4": 16, "i4": 16, "u8": 8, "i8": 8, "f4": 4}
"""Factors whose product does not overflow, by dtype; one for others."""


def multiply_heights(
    tile: AnyArray, mantissa: AnyArray, exponent: AnyArray, pending: int = 0
) -> int:
    """Multiply the products by (frame - min(frame) + 1) of each frame of a tile.

    The tile holds whole frames, shape (n, *sig); a product is ``mantissa * 2**exponent``, float64
    and int64, both of shape `sig` and contiguous. The mantissa was within 1 and 2 before it was
    multiplied `pending` times; how often it has been now is returned.
    """
    if not tile.size:
        return pending
    if wider(tile.dtype) is None:
        tile = tile.astype(np.float64)
    rows = as_rows(tile)
    lowest = tile.reshape((len(tile), -1)).min(axis=1).astype(np.float64)
    safe = SAFE.get(f"{rows.flat.dtype.kind}{rows.flat.dtype.itemsize}", 1)
    factors = mantissa.reshape(-1)
    bits, powers = factors.view(np.int64), exponent.reshape(-1)
    now: int = multiply_columns(*rows, lowest, safe, pending, BLOCK, factors, bits, powers)
    return now


def normalize_products(mantissa: AnyArray, exponent: AnyArray) -> None:
    """Bring the mantissa within 1 and 2."""
    normalize(mantissa.reshape(-1).view(np.int64), exponent.reshape(-1))


def merge_products(
    mantissa: AnyArray, exponent: AnyArray, more_mantissa: AnyArray, more_exponent: AnyArray
) -> None:
    """Multiply products by others, both with a mantissa within 1 and 2."""
    mantissa *= more_mantissa
    exponent += more_exponent
    normalize_products(mantissa, exponent)


def log_of(mantissa: AnyArray, exponent: AnyArray) -> AnyArray:
    """Return the natural logarithm of products, float64."""
    logs: AnyArray = np.log(mantissa)
    logs += exponent * math.log(2)
    return logs


@kernel
def multiply_columns(
    flat: AnyArray,
    count: int,
    step: int,
    width: int,
    turn: Any,
    lowest: AnyArray,
    safe: int,
    pending: int,
    block: int,
    mantissa: AnyArray,
    bits: AnyArray,
    exponent: AnyArray,
) -> int:
    """Multiply by every row less its `lowest` value, plus 1; `bits` are those of the mantissa.

    Never more than `safe` times before the next normalisation; returns how often since the last.
    """
    fours = count - count % 4 if safe >= 4 else 0
    now = pending
    for start in range(0, width, block):
        stop = min(start + block, width)
        n = stop - start
        product = mantissa[start:stop]
        now = pending
        for i in range(0, fours, 4):
            if now + 4 > safe:
                normalize(bits[start:stop], exponent[start:stop])
                now = 0
            k = i * step + start
            _multiply_four(
                product,
                turn,
                flat[k : k + n],
                flat[k + step : k + step + n],
                flat[k + 2 * step : k + 2 * step + n],
                flat[k + 3 * step : k + 3 * step + n],
                lowest[i : i + 4],
            )
            now += 4
        for i in range(fours, count):
            if now + 1 > safe:
                normalize(bits[start:stop], exponent[start:stop])
                now = 0
            k = i * step + start
            _multiply_one(product, turn, flat[k : k + n], lowest[i])
            now += 1
    return now


@kernel
def normalize(bits: AnyArray, exponent: AnyArray) -> None:
    """Move the powers of two of positive float64 numbers, given as bits, to `exponent`.

    Infinity and NaN stay as they are.
    """
    for j in range(len(bits)):
        value = bits[j]
        power = (value >> 52) & 0x7FF  # the NaN of -inf - -inf has its sign bit set
        finite = power != 0x7FF
        exponent[j] += (power - 1023) if finite else 0
        bits[j] = ((value & 0xFFFFFFFFFFFFF) | (1023 << 52)) if finite else value


@inner_kernel
def _multiply_one(product: AnyArray, turn: Any, a: AnyArray, low: float) -> None:
    """Multiply by the values of a row less `low`, plus 1."""
    for j in range(len(product)):
        product[j] *= (np.float64(turned(a[j], turn)) - low) + 1.0


@inner_kernel
def _multiply_four(
    product: AnyArray,
    turn: Any,
    a: AnyArray,
    b: AnyArray,
    c: AnyArray,
    d: AnyArray,
    low: AnyArray,
) -> None:
    """Multiply by the values of four rows, each less its `low`, plus 1."""
    p, q, r, s = low[0], low[1], low[2], low[3]
    for j in range(len(product)):
        t, u = np.float64(turned(a[j], turn)), np.float64(turned(b[j], turn))
        v, w = np.float64(turned(c[j], turn)), np.float64(turned(d[j], turn))
        product[j] *= ((t - p + 1.0) * (u - q + 1.0)) * ((v - r + 1.0) * (w - s + 1.0))
