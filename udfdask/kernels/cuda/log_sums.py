"""Products of many numbers, as a mantissa and a power of two: the sum of their logarithms."""

from __future__ import annotations

from typing import Any

import numpy as np

from udfdask.arrays.backends.table import namespace_of
from udfdask.kernels.cuda.sums import blocks_of


def multiply_heights(tile: Any, mantissa: Any, exponent: Any) -> None:
    """Multiply the products by (frame - min(frame) + 1) of each frame of a tile.

    The tile holds whole frames, shape (n, *sig); a product is ``mantissa * 2**exponent``, float64
    and int64, both of shape `sig`.
    """
    xp, axes = namespace_of(tile), tuple(range(1, tile.ndim))
    for (block,) in blocks_of(8, tile):
        heights = block.astype(np.float64)
        heights -= heights.min(axis=axes, keepdims=True)
        logs = xp.log2(heights + 1).sum(axis=0)
        powers = xp.where(xp.isfinite(logs), xp.floor(logs), 0)
        mantissa *= xp.exp2(logs - powers)
        exponent += powers.astype(exponent.dtype)
        normalize_products(mantissa, exponent)


def normalize_products(mantissa: Any, exponent: Any) -> None:
    """Bring the mantissa within 1 and 2, but for what is not finite."""
    xp = namespace_of(mantissa)
    fraction, power = xp.frexp(mantissa)  # within 1/2 and 1
    finite = xp.isfinite(mantissa)
    exponent += xp.where(finite, power - 1, 0).astype(exponent.dtype)
    mantissa[...] = xp.where(finite, 2 * fraction, mantissa)


def merge_products(mantissa: Any, exponent: Any, more_mantissa: Any, more_exponent: Any) -> None:
    """Multiply products by others, both with a mantissa within 1 and 2."""
    mantissa *= more_mantissa
    exponent += more_exponent
    normalize_products(mantissa, exponent)
