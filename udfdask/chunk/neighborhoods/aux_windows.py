"""Cut windows of aux data: the values of frames and of their neighbors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from udfdask.arrays.backends.check_block import check_block, plain_block
from udfdask.arrays.backends.convert import to_host
from udfdask.arrays.backends.read_only import locked
from udfdask.arrays.geometry.chunk_grid import Grid
from udfdask.arrays.geometry.halo import Box, Halo
from udfdask.types import AnyArray
from udfdask.udf.aux_data import AuxData

StoredValues = tuple[Box, AnyArray]
"""The values of a box of scan positions, shape (*box, *extra_shape)."""

AuxStores = Sequence[Mapping[tuple[int, ...], Sequence[StoredValues]] | None]
"""For each of `recipe.aux_slots`, values by the index of their chunk; None for other UDFs."""


def checked_values(block: Any, box: Box, aux: AuxData, what: str) -> StoredValues:
    """Return the values of a box of scan positions.

    Raise if a lazy block differs from its announced shape or dtype. `what` names the values.
    """
    origin = f"{what}: a chunk"
    values = to_host(plain_block(block, origin))
    shape = (*(stop - first for first, stop in box), *aux.extra_shape)
    check_block(values, shape, aux.dtype, origin)
    return box, locked(values.astype(aux.dtype, copy=False))


def aux_window(
    stores: Mapping[tuple[int, ...], Sequence[StoredValues]] | None,
    halo: Halo,
    box: Box,
    grid: Grid,
) -> AnyArray:
    """Return the values of a window around some positions, read-only; 0 where there is none."""
    assert stores is not None
    window: AnyArray | None = None
    for part in halo.pieces(box, grid):
        for held, values in stores.get(part.chunk, ()):
            if _holds(held, part.source):
                if window is None:
                    extra = values.shape[len(box) :]
                    window = np.zeros((*halo.around(box), *extra), values.dtype)
                place = (
                    slice(a - first, b - first)
                    for (a, b), (first, _) in zip(part.source, held, strict=True)
                )
                window[part.place] = values[tuple(place)]
                break
    assert window is not None  # the position in the middle of a window exists
    return locked(window)


def _holds(held: Box, box: Box) -> bool:
    """Return whether some positions are among others."""
    return all(
        start <= first and stop <= end
        for (first, stop), (start, end) in zip(box, held, strict=True)
    )
