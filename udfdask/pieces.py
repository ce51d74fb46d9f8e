"""A piece of data in the dtypes that UDFs want it in, converted and corrected once for all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from udfdask.auxdata import locked
from udfdask.corrections.planes import tile_planes
from udfdask.corrections.tile import correct_tile
from udfdask.instance import Instance
from udfdask.slices import Slice
from udfdask.source import convert
from udfdask.types import AnyArray


class Pieces:
    """A piece of data in the dtypes that the UDFs want, converted and corrected once for each.

    It is a signal part of frames, by default all of it. `look` returns what the same frames hold at
    places outside of the part, int, (sig dims, m), as an array of shape (frames, m).
    """

    __slots__ = ("_converted", "_look", "_native", "_part")

    def __init__(
        self,
        native: AnyArray,
        part: Slice | None = None,
        look: Callable[[AnyArray], AnyArray] | None = None,
    ) -> None:
        self._native = native
        self._part = part
        self._look = look
        self._converted: dict[np.dtype[Any], AnyArray] = {}

    def get(self, instance: Instance) -> AnyArray:
        """Return the piece in the dtype of a UDF; private and writable if it asks for that."""
        dtype = instance.where.input_dtype
        if instance.recipe.corrections is not None:
            corrected = self._corrected(instance, dtype)
            return corrected.copy() if instance.writable_input else corrected
        if instance.writable_input:
            return np.array(self._native, dtype=dtype, order="C")
        if self._native.dtype == dtype:
            return self._native
        if dtype not in self._converted:
            self._converted[dtype] = convert(self._native, dtype)
        return self._converted[dtype]

    def _corrected(self, instance: Instance, dtype: np.dtype[Any]) -> AnyArray:
        """Return the corrected piece in a dtype, read-only."""
        if dtype not in self._converted:
            corrections, part = instance.recipe.corrections, self._part
            sig, beyond = instance.recipe.shape.sig, None
            assert corrections is not None
            if part is None:
                part = Slice((0,) * len(sig), sig)
            planes = tile_planes(corrections, part, dtype, sig)
            if planes.beyond.size:
                assert self._look is not None
                beyond = self._look(planes.beyond)
            self._converted[dtype] = locked(correct_tile(self._native, planes, beyond))
        return self._converted[dtype]
