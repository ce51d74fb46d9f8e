"""Check that a block has the type, shape and dtype that its dask array announced."""

from __future__ import annotations

from typing import Any

import numpy as np

from udfdask.arrays.backends.dense_backends import NUMPY
from udfdask.arrays.backends.table import backend_of, is_unknown_sparse
from udfdask.errors import UDFError


def plain_block(block: Any, what: str) -> Any:
    """Return a block as an array of a known backend: a NumPy array if its type is unknown.

    `what` names the block in errors. A block with masked values is refused, because the values
    under the mask would count. A mask that hides no value is dropped.
    """
    mask = getattr(block, "mask", None)
    if mask is not None and not callable(mask) and np.any(mask):
        raise UDFError(
            f"{what} has masked values, but its dask array announced none, and the values under "
            "the mask would count: fill them, with "
            "array.map_blocks(lambda block: np.ma.filled(block, 0), dtype=array.dtype)"
        )
    if isinstance(block, np.ndarray) or backend_of(block) != NUMPY or is_unknown_sparse(block):
        return block
    try:
        return np.asarray(block)
    except (TypeError, ValueError) as error:
        raise UDFError(
            f"{what} of type {type(block).__name__} came, which NumPy cannot convert to an array: "
            f"{error}"
        ) from None


def check_block(array: Any, shape: tuple[int, ...], dtype: np.dtype[Any], what: str) -> None:
    """Raise if an array has another shape, or cannot be cast to the announced dtype."""
    if tuple(array.shape) != shape:
        raise UDFError(
            f"{what} of shape {shape} was announced, but one of shape {tuple(array.shape)} came: "
            "correct the chunks of the dask array"
        )
    if array.dtype != dtype and not np.can_cast(array.dtype, dtype, "same_kind"):
        raise UDFError(
            f"{what} of dtype {dtype} was announced, but one of dtype {array.dtype} came: correct "
            "the dtype (meta) of the dask array"
        )
