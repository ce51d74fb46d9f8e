"""Multiply matrices with NumPy, which calls BLAS for most dtypes."""

from __future__ import annotations

import numpy as np

from udfdask.types import AnyArray


def product(first: AnyArray, second: AnyArray) -> AnyArray:
    """Return ``first @ second`` without warnings, like compiled kernels.

    Which floating-point flags BLAS leaves depends on the processor: some of its kernels fill up
    blocks with zeros, and infinity times zero is invalid even if it is part of no result.
    """
    with np.errstate(all="ignore"):
        products: AnyArray = first @ second
    return products
