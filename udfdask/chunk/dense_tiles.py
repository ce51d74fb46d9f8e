"""A piece of data in the dtypes that UDFs want it in, converted and corrected once for all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from udfdask.arrays.backends import names
from udfdask.arrays.backends.convert import to_backend
from udfdask.arrays.backends.device import array_module, is_on_device, to_host
from udfdask.arrays.backends.device_transfer import tile_to_device
from udfdask.arrays.backends.read_only import locked, locked_sparse
from udfdask.arrays.geometry.slices import Slice
from udfdask.chunk.udf_instance import Instance
from udfdask.corrections.correct_sum import UncorrectedTile, precise
from udfdask.corrections.correct_tile import correct_tile
from udfdask.corrections.correct_tile_cuda import correct_on_device
from udfdask.corrections.planes import TilePlanes, tile_planes
from udfdask.types import AnyArray


class DensePieces:
    """A piece of dense data, converted and corrected once for each dtype, on host and device.

    It is a signal part of frames, by default all of it. `look` returns what the same frames hold at
    places outside of the part, int, (sig dims, m), as an array of shape (frames, m). What UDFs want
    on the other side is moved there once, as it is, and converted there: data are narrow.
    """

    def __init__(
        self,
        native: AnyArray,
        part: Slice | None = None,
        look: Callable[[AnyArray], AnyArray] | None = None,
    ) -> None:
        self._native = native
        self._part = part
        self._look = look
        self._on_device = is_on_device(native)
        self._other_side: DensePieces | None = None
        self._converted: dict[np.dtype[Any], AnyArray] = {}
        self._elsewhere: dict[tuple[np.dtype[Any], str], Any] = {}

    def get(self, instance: Instance) -> Any:
        """Return the piece in the dtype and backend of a UDF."""
        if instance.on_device != self._on_device:
            return self._across().get(instance)
        if instance.backend in names.SPARSE_BACKENDS:
            return self._sparse(instance)
        dtype, native = instance.where.input_dtype, self._native.dtype
        promises = instance.where.promises
        if instance.recipe.corrections is not None:
            summed = precise(native)
            if promises.only_sums_frames and summed is not None and not self._on_device:
                return UncorrectedTile(self._native, *self._planes(instance, summed))
            corrected = self._corrected(instance, dtype)
            return corrected.copy() if instance.writable_input else corrected
        if instance.writable_input:
            return array_module(self._native).array(self._native, dtype=dtype, order="C")
        if dtype == (native.newbyteorder("=") if promises.takes_any_byte_order else native):
            return self._native
        if dtype not in self._converted:
            self._converted[dtype] = convert(self._native, dtype)
        return self._converted[dtype]

    def _across(self) -> DensePieces:
        """Return the same piece on the other side: of the device, or of the host."""
        if self._other_side is None:
            look = self._look
            self._other_side = DensePieces(
                _moved(self._native),
                self._part,
                None if look is None else lambda places: _moved(look(places)),
            )
        return self._other_side

    def _sparse(self, instance: Instance) -> Any:
        """Return the piece in a sparse backend."""
        dtype, backend = instance.where.input_dtype, instance.backend
        if (dtype, backend) not in self._elsewhere:
            if instance.recipe.corrections is not None:
                dense = self._corrected(instance, dtype)
            else:
                dense = convert(self._native, dtype)
            self._elsewhere[dtype, backend] = to_backend(dense, backend, dense.shape)
        piece = self._elsewhere[dtype, backend]
        return piece.copy() if instance.writable_input else locked_sparse(piece)

    def _corrected(self, instance: Instance, dtype: np.dtype[Any]) -> AnyArray:
        """Return the corrected piece in a dtype, read-only."""
        if dtype not in self._converted:
            correct = correct_on_device if self._on_device else correct_tile
            corrected = correct(self._native, *self._planes(instance, dtype))
            self._converted[dtype] = locked(corrected)
        return self._converted[dtype]

    def _planes(
        self, instance: Instance, dtype: np.dtype[Any]
    ) -> tuple[TilePlanes, AnyArray | None]:
        """Return what corrects the piece, and the pixels outside of it that this takes."""
        corrections, sig = instance.recipe.corrections, instance.recipe.shape.sig
        assert corrections is not None
        part = self._part or Slice((0,) * len(sig), sig)
        planes = tile_planes(corrections, part, dtype, sig)
        if not planes.beyond.size:
            return planes, None
        assert self._look is not None
        return planes, self._look(planes.beyond)


def _moved(array: Any) -> Any:
    """Return an array of the host on the device, one of the device on the host, read-only there."""
    return locked(to_host(array)) if is_on_device(array) else tile_to_device(array)


def convert(array: AnyArray, dtype: np.dtype[Any]) -> AnyArray:
    """Return a piece in a dtype: itself, or a read-only converted copy."""
    return array if array.dtype == dtype else locked(array.astype(dtype))
