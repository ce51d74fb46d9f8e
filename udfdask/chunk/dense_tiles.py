"""Cut dense tiles, and convert and correct each of them once for all UDFs that want the same."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from udfdask.arrays.backends.backend import Backend, DenseBackend
from udfdask.arrays.backends.convert import to_backend
from udfdask.arrays.geometry.slices import Slice
from udfdask.arrays.geometry.tiling import TilingScheme
from udfdask.chunk.frames.source import FrameSource
from udfdask.chunk.udf_instance import Instance
from udfdask.corrections.correct_sum import UncorrectedTile, precise
from udfdask.corrections.correct_tile import correct_tile
from udfdask.corrections.planes import TilePlanes, tile_planes
from udfdask.types import AnyArray

if TYPE_CHECKING:
    from udfdask.udf.tile_sums import TileSums


class DenseCutter:
    """Cuts dense tiles from a chunk, also from sparse blocks: then tile by tile."""

    def __init__(self, source: FrameSource, tiling: TilingScheme) -> None:
        self.source = source
        self.tiling = tiling

    def reader(self, part: Slice, block: int) -> Callable[[int, int], DenseTile]:
        """Return a function of first and last row that reads a part of signal chunk `block`."""
        source, dense = self.source, self.source.dense
        corner = next(first.origin for first, number in self.tiling.sig_parts if number == block)
        window = part.shift_by([-o for o in corner]).get()
        place = block if source.n_blocks > 1 else 0

        def read(start: int, stop: int) -> DenseTile:
            tile = source.tile(start, stop, place, window)
            return DenseTile(tile, dense, part, partial(source.pixels, start, stop))

        return read

    def frames(self, start: int, stop: int) -> DenseTile:
        """Return the full frames of rows `start` to `stop`."""
        return DenseTile(self.source.frames(start, stop), self.source.dense)


class DenseTile:
    """A dense tile, converted and corrected once for each dtype and dense backend.

    Its signal part is `part`, by default full frames. `pixels_at` returns the values of the same
    frames at pixels outside of the part, int, (sig dims, m), as an array of shape (frames, m). If
    UDFs want the tile on a device, it is moved there once and converted there: the dtypes of
    detectors are narrower than those of arithmetic, so that fewer bytes travel.
    """

    def __init__(
        self,
        native: AnyArray,
        backend: DenseBackend,
        part: Slice | None = None,
        pixels_at: Callable[[AnyArray], AnyArray] | None = None,
    ) -> None:
        self._native = native
        self._part = part
        self._pixels_at = pixels_at
        self._backend = backend
        self._moved: dict[DenseBackend, DenseTile] = {}
        self._converted: dict[np.dtype[Any], AnyArray] = {}
        self._sums: dict[np.dtype[Any], TileSums] = {}
        self._sparse_tiles: dict[tuple[np.dtype[Any], Backend], Any] = {}

    def get(self, instance: Instance) -> Any:
        """Return the tile in the dtype and backend of a UDF."""
        if instance.dense != self._backend:
            return self._in(instance.dense).get(instance)
        if instance.backend.is_sparse:
            return self._sparse(instance)
        dtype, native = instance.declared.input_dtype, self._native.dtype
        promises = instance.declared.promises
        if instance.recipe.corrections is not None:
            summed = precise(native)
            # the UDF corrects the sum of the frames in place of each frame
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

    def sums(self, instance: Instance) -> TileSums:
        """Return the sums of the tile in the dtype of a UDF, for all UDFs that share them."""
        from udfdask.udf.tile_sums import TileSums  # most runs do not need it

        dtype = instance.declared.input_dtype
        if dtype not in self._sums:
            self._sums[dtype] = TileSums(self.get(instance))
        return self._sums[dtype]

    def _in(self, backend: DenseBackend) -> DenseTile:
        """Return the same tile in another dense backend."""
        if backend not in self._moved:
            pixels_at = self._pixels_at

            def move(array: Any) -> Any:
                return backend.read_only(backend.send(self._backend.to_host(array)))

            self._moved[backend] = DenseTile(
                move(self._native),
                backend,
                self._part,
                None if pixels_at is None else lambda places: move(pixels_at(places)),
            )
        return self._moved[backend]

    def _sparse(self, instance: Instance) -> Any:
        """Return the tile in a sparse backend."""
        dtype, backend = instance.declared.input_dtype, instance.backend
        if (dtype, backend) not in self._sparse_tiles:
            if instance.recipe.corrections is not None:
                dense = self._corrected(instance, dtype)
            else:
                dense = self._convert(dtype)
            self._sparse_tiles[dtype, backend] = to_backend(dense, backend, dense.shape)
        tile = self._sparse_tiles[dtype, backend]
        return tile.copy() if instance.writable_input else backend.read_only(tile)

    def _corrected(self, instance: Instance, dtype: np.dtype[Any]) -> AnyArray:
        """Return the corrected tile in a dtype, read-only."""
        if dtype not in self._converted:
            planes = self._planes(instance, dtype)
            if self._backend.is_compiled_for:
                corrected = self._backend.from_host(correct_tile(self._native, *planes))
            else:
                from udfdask.corrections.correct_tile_cuda import correct_on_device

                corrected = correct_on_device(self._native, *planes)
            self._converted[dtype] = self._backend.read_only(corrected)
        return self._converted[dtype]

    def _planes(
        self, instance: Instance, dtype: np.dtype[Any]
    ) -> tuple[TilePlanes, AnyArray | None]:
        """Return the correction planes of the tile, and the values that they need from outside."""
        corrections, sig = instance.recipe.corrections, instance.recipe.shape.sig
        assert corrections is not None
        part = self._part or Slice((0,) * len(sig), sig)
        planes = tile_planes(corrections, part, dtype, sig)
        if not planes.beyond.size:
            return planes, None
        # single pixels are looked up, so that full frames are never assembled for a patch
        assert self._pixels_at is not None
        return planes, self._pixels_at(planes.beyond)

    def _convert(self, dtype: np.dtype[Any]) -> AnyArray:
        """Return the tile in a dtype: itself, or a read-only converted copy."""
        if self._native.dtype == dtype:
            return self._native
        converted: AnyArray = self._backend.read_only(self._backend.astype(self._native, dtype))
        return converted
