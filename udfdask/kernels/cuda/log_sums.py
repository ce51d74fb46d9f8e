"""Sums of logarithms, as logarithms of products: a mantissa and a power of two."""

from __future__ import annotations

from typing import Any

import numpy as np

from udfdask.arrays.backends.table import namespace_of
from udfdask.kernels.cuda.sums import blocks_of


def multiply_heights(tile: Any, mantissa: Any, exponent: Any) -> None:
    """Multiply the products with (frame - min(frame) + 1) for each frame of a tile.

    The tile consists of full frames, shape (n, *sig). A product is ``mantissa * 2**exponent``,
    float64 and int64, both of shape `sig`.
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
    """Bring each finite mantissa between 1 and 2."""
    xp = namespace_of(mantissa)
    fraction, power = xp.frexp(mantissa)  # between 1/2 and 1
    finite = xp.isfinite(mantissa)
    exponent += xp.where(finite, power - 1, 0).astype(exponent.dtype)
    mantissa[...] = xp.where(finite, 2 * fraction, mantissa)


def merge_products(mantissa: Any, exponent: Any, more_mantissa: Any, more_exponent: Any) -> None:
    """Multiply products with others, all with a mantissa between 1 and 2."""
    mantissa *= more_mantissa
    exponent += more_exponent
    normalize_products(mantissa, exponent)
