"""Cut dense tiles; convert, correct and shift each of them once for all UDFs that want the same."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from udfdask.backends.backend import Backend, DenseBackend
from udfdask.backends.table import to_backend
from udfdask.chunk.frames import FrameSource
from udfdask.chunk.udf_instance import Instance
from udfdask.corrections.correct_tile import UncorrectedTile, correct_tile, precise
from udfdask.corrections.planes import TilePlanes, tile_planes
from udfdask.geometry.slices import Slice
from udfdask.geometry.tiling import TilingScheme
from udfdask.types import AnyArray

if TYPE_CHECKING:
    from udfdask.descan.shift_tile import FrameShifts, ReusedMemory, TileShifts
    from udfdask.udf.tile_sums import TileSums


class DenseCutter:
    """Cuts dense tiles from a chunk, also from sparse blocks: then tile by tile."""

    def __init__(
        self,
        source: FrameSource,
        tiling: TilingScheme,
        shifts: FrameShifts | None = None,
        corrected: bool = False,
    ) -> None:
        self.source = source
        self.tiling = tiling
        self._shifts = shifts
        self._corrected = corrected
        self._memory: ReusedMemory | None = None
        if shifts is not None:
            from udfdask.descan.shift_tile import ReusedMemory  # few runs need it

            self._memory = ReusedMemory()

    @property
    def tiles_are_views(self) -> bool:
        """Whether tiles of many frames are views that kernels read without a copy."""
        return self._shifts is None and self.source.tiles_are_views

    def reader(self, part: Slice, block: int) -> Callable[[int, int], DenseTile]:
        """Return a function of first and last row that reads a part of signal chunk `block`.

        A part of shifted frames can need pixels of all signal chunks.
        """
        if self._shifts is not None:
            return self._shifted(self._shifts, part)
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
        if self._shifts is not None:
            return self._shifted_frames(start, stop)
        return DenseTile(self.source.frames(start, stop), self.source.dense)

    @cached_property
    def _shifted_frames(self) -> Callable[[int, int], DenseTile]:
        """A function of first and last row that reads full shifted frames."""
        assert self._shifts is not None
        sig = self.tiling.dataset_shape
        return self._shifted(self._shifts, Slice((0,) * len(sig), sig))

    def _shifted(self, shifts: FrameShifts, part: Slice) -> Callable[[int, int], DenseTile]:
        """Return a function of first and last row that reads a part of the shifted frames.

        Frames are corrected where they are on the detector: then the part is a full frame, and
        is shifted after the correction.
        """
        from udfdask.descan.shift_tile import shift_tile  # few runs need it

        source, dense, memory = self.source, self.source.dense, self._memory
        assert memory is not None
        window, of_part = shifts.of_part(part, whole_window=self._corrected)
        late = self._corrected or shifts.interpolates

        def read(start: int, stop: int) -> DenseTile:
            raw, of_rows = source.window(start, stop, window), of_part.of_rows(start, stop)
            if late:
                return DenseTile(raw, dense, shifts=of_rows, memory=memory)
            tile = shift_tile(raw, of_rows, raw.dtype, dense, memory)
            return DenseTile(dense.read_only(tile), dense)

        return read


class DenseTile:
    """A dense tile; converted, corrected and shifted once for each dtype and dense backend.

    Its signal part is `part`, by default full frames. `pixels_at` returns the values of the same
    frames at pixels outside of the part, int, (sig dims, m), as an array of shape (frames, m).
    `shifts` make the tile from `native`, which is then a window of the frames around it; the tile
    is made in `memory`. If UDFs
    want the tile on a device, it is moved there once and converted there: the dtypes of
    detectors are narrower than those of arithmetic, so that fewer bytes travel.
    """

    def __init__(
        self,
        native: AnyArray,
        backend: DenseBackend,
        part: Slice | None = None,
        pixels_at: Callable[[AnyArray], AnyArray] | None = None,
        shifts: TileShifts | None = None,
        memory: ReusedMemory | None = None,
    ) -> None:
        self._native = native
        self._part = part
        self._pixels_at = pixels_at
        self._shifts = shifts
        self._memory = memory
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
        if instance.recipe.corrections is not None and self._shifts is None:
            summed = precise(native)
            # the UDF corrects the sum of the frames in place of each frame
            if promises.only_sums_frames and summed is not None and not self._backend.on_device:
                return UncorrectedTile(self._native, *self._planes(instance, summed))
        if instance.recipe.corrections is not None or self._shifts is not None:
            changed = self._changed(instance, dtype)
            return changed.copy() if instance.writable_input else changed
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
                self._shifts,
                self._memory,
            )
        return self._moved[backend]

    def _sparse(self, instance: Instance) -> Any:
        """Return the tile in a sparse backend."""
        dtype, backend = instance.declared.input_dtype, instance.backend
        if (dtype, backend) not in self._sparse_tiles:
            if instance.recipe.corrections is not None or self._shifts is not None:
                dense = self._changed(instance, dtype)
            else:
                dense = self._convert(dtype)
            self._sparse_tiles[dtype, backend] = to_backend(dense, backend, dense.shape)
        tile = self._sparse_tiles[dtype, backend]
        return tile.copy() if instance.writable_input else backend.read_only(tile)

    def _changed(self, instance: Instance, dtype: np.dtype[Any]) -> AnyArray:
        """Return the corrected and shifted tile in a dtype, read-only."""
        if dtype not in self._converted:
            changed = self._native
            if instance.recipe.corrections is not None:
                changed = self._corrected(instance, dtype)
            if self._shifts is not None:
                from udfdask.descan.shift_tile import shift_tile  # few runs need it

                assert self._memory is not None
                changed = shift_tile(changed, self._shifts, dtype, self._backend, self._memory)
            self._converted[dtype] = self._backend.read_only(changed)
        return self._converted[dtype]

    def _corrected(self, instance: Instance, dtype: np.dtype[Any]) -> AnyArray:
        """Return the corrected tile in a dtype."""
        planes = self._planes(instance, dtype)
        corrected: AnyArray
        if not self._backend.on_device:
            corrected = self._backend.from_host(correct_tile(self._native, *planes))
        else:
            from udfdask.corrections.correct_tile import correct_on_device

            corrected = correct_on_device(self._native, *planes)
        return corrected

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
        converted: AnyArray = self._backend.read_only(self._native.astype(dtype))
        return converted
