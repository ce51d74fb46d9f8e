"""A piece of data in the dtypes that UDFs want it in, converted and corrected once for all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from udfdask.arrays.backends.backend import Backend, DenseBackend
from udfdask.arrays.backends.convert import to_backend
from udfdask.arrays.geometry.slices import Slice
from udfdask.chunk.udf_instance import Instance
from udfdask.corrections.correct_sum import UncorrectedTile, precise
from udfdask.corrections.correct_tile import correct_tile
from udfdask.corrections.correct_tile_cuda import correct_on_device
from udfdask.corrections.planes import TilePlanes, tile_planes
from udfdask.types import AnyArray


class DensePieces:
    """A piece of dense data, converted and corrected once for each dtype and dense backend.

    It is a signal part of frames, by default all of it. `look` returns what the same frames hold at
    places outside of the part, int, (sig dims, m), as an array of shape (frames, m). A piece that
    UDFs want in another dense backend, such as that of a device, is moved there once, as it is, and
    converted there: data are narrow.
    """

    def __init__(
        self,
        native: AnyArray,
        backend: DenseBackend,
        part: Slice | None = None,
        look: Callable[[AnyArray], AnyArray] | None = None,
    ) -> None:
        self._native = native
        self._part = part
        self._look = look
        self._backend = backend
        self._moved: dict[DenseBackend, DensePieces] = {}
        self._converted: dict[np.dtype[Any], AnyArray] = {}
        self._elsewhere: dict[tuple[np.dtype[Any], Backend], Any] = {}

    def get(self, instance: Instance) -> Any:
        """Return the piece in the dtype and backend of a UDF."""
        if instance.dense != self._backend:
            return self._in(instance.dense).get(instance)
        if instance.backend.is_sparse:
            return self._sparse(instance)
        dtype, native = instance.where.input_dtype, self._native.dtype
        promises = instance.where.promises
        if instance.recipe.corrections is not None:
            summed = precise(native)
            if promises.only_sums_frames and summed is not None and self._backend.is_compiled_for:
                return UncorrectedTile(self._native, *self._planes(instance, summed))
            corrected = self._corrected(instance, dtype)
            return corrected.copy() if instance.writable_input else corrected
        if instance.writable_input:
            return self._backend.own_copy(self._native, dtype)
        if dtype == (native.newbyteorder("=") if promises.takes_any_byte_order else native):
            return self._native
        if dtype not in self._converted:
            self._converted[dtype] = self._convert(dtype)
        return self._converted[dtype]

    def _in(self, backend: DenseBackend) -> DensePieces:
        """Return the same piece in another dense backend."""
        if backend not in self._moved:
            look = self._look

            def move(array: Any) -> Any:
                return backend.read_only(backend.send(self._backend.to_host(array)))

            self._moved[backend] = DensePieces(
                move(self._native),
                backend,
                self._part,
                None if look is None else lambda places: move(look(places)),
            )
        return self._moved[backend]

    def _sparse(self, instance: Instance) -> Any:
        """Return the piece in a sparse backend."""
        dtype, backend = instance.where.input_dtype, instance.backend
        if (dtype, backend) not in self._elsewhere:
            if instance.recipe.corrections is not None:
                dense = self._corrected(instance, dtype)
            else:
                dense = self._convert(dtype)
            self._elsewhere[dtype, backend] = to_backend(dense, backend, dense.shape)
        piece = self._elsewhere[dtype, backend]
        return piece.copy() if instance.writable_input else backend.read_only(piece)

    def _corrected(self, instance: Instance, dtype: np.dtype[Any]) -> AnyArray:
        """Return the corrected piece in a dtype, read-only."""
        if dtype not in self._converted:
            correct = correct_tile if self._backend.is_compiled_for else correct_on_device
            corrected = correct(self._native, *self._planes(instance, dtype))
            self._converted[dtype] = self._backend.read_only(corrected)
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

    def _convert(self, dtype: np.dtype[Any]) -> AnyArray:
        """Return the piece in a dtype: itself, or a read-only converted copy."""
        if self._native.dtype == dtype:
            return self._native
        converted: AnyArray = self._backend.read_only(self._backend.astype(self._native, dtype))
        return converted
