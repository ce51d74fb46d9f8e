"""Cut tiles; convert, correct and shift each of them once for all UDFs that want the same."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from udfdask.backends.backend import Backend, DenseBackend
from udfdask.backends.sparse_rows import SparseBackend
from udfdask.backends.table import to_backend
from udfdask.base.types import AnyArray
from udfdask.chunk.frames import FrameSource, SparseSource
from udfdask.chunk.udf_instance import Instance
from udfdask.corrections.correct_tile import (
    UncorrectedTile,
    correct_on_device,
    correct_tile,
    precise,
)
from udfdask.corrections.planes import TilePlanes, tile_planes
from udfdask.corrections.shift_tile import FrameShifts, ReusedMemory, TileShifts, shift_tile
from udfdask.geometry.slices import Slice
from udfdask.geometry.tiling import TilingScheme

if TYPE_CHECKING:
    from udfdask.udf.tile_sums import TileSums


@dataclass(slots=True, eq=False)
class Cutter:
    """Cuts tiles from a chunk: dense ones, also from sparse blocks, then tile by tile; or `sparse`.

    Sparse tiles are views of rows of one signal chunk, or full frames.
    """

    source: FrameSource
    tiling: TilingScheme
    shifts: FrameShifts | None = None
    corrected: bool = False
    sparse: bool = False
    _memory: ReusedMemory = field(default_factory=ReusedMemory, init=False)

    @property
    def tiles_are_views(self) -> bool:
        """Whether tiles of many frames are views that kernels read without a copy."""
        return self.shifts is None and self.source.tiles_are_views

    def reader(
        self, part: Slice | None = None, block: int = 0
    ) -> Callable[[int, int], DenseTile | SparseTile]:
        """Return a function of first and last row that reads a part of `block`, or full frames."""
        source, dense, frame = self.source, self.source.dense, self.tiling.dataset_shape
        place = block if source.n_blocks > 1 else 0
        if self.sparse:
            assert isinstance(source, SparseSource)
            sparse, sig = source, tuple(frame if part is None else part.shape)
            number = None if part is None else place
            return lambda start, stop: SparseTile(sparse.sparse(start, stop, number), sig)
        if self.shifts is not None:
            return self._shifted(self.shifts, part or Slice((0,) * len(frame), frame))
        if part is None:
            whole = tuple(slice(0, n) for n in frame)
            return lambda start, stop: DenseTile(source.window(start, stop, whole), dense)
        corner = next(first.origin for first, number in self.tiling.sig_parts if number == block)
        window = part.shift_by([-o for o in corner]).get()

        def read(start: int, stop: int) -> DenseTile:
            tile = source.tile(start, stop, place, window)
            return DenseTile(tile, dense, part, partial(source.pixels, start, stop))

        return read

    def _shifted(self, shifts: FrameShifts, part: Slice) -> Callable[[int, int], DenseTile]:
        """Return a function of first and last row that reads a part of the shifted frames.

        Frames are corrected where they are on the detector: then the part is a full frame, and
        is shifted after the correction.
        """
        source, dense, memory = self.source, self.source.dense, self._memory
        window, of_part = shifts.of_part(part, whole_window=self.corrected)
        late = self.corrected or shifts.interpolates

        def read(start: int, stop: int) -> DenseTile:
            raw, of_rows = source.window(start, stop, window), of_part.of_rows(start, stop)
            if late:
                return DenseTile(raw, dense, shifts=of_rows, memory=memory)
            tile = shift_tile(raw, of_rows, raw.dtype, dense, memory)
            return DenseTile(dense.read_only(tile), dense)

        return read


@dataclass(slots=True, eq=False)
class DenseTile:
    """A dense tile; converted, corrected and shifted once for each dtype and dense backend."""

    native: AnyArray
    """The tile as it is in the blocks; with `shifts`, a window of the frames around it."""
    backend: DenseBackend
    """Its array backend."""
    part: Slice | None = None
    """Its signal part; None for full frames."""
    pixels_at: Callable[[AnyArray], AnyArray] | None = None
    """Returns the values of the same frames at pixels outside of the part, int, (sig dims, m), as
    an array of shape (frames, m)."""
    shifts: TileShifts | None = None
    """How the tile is made from the window."""
    memory: ReusedMemory | None = None
    """Where the tile is made then."""
    _made: dict[Hashable, Any] = field(default_factory=dict, init=False)

    def get(self, instance: Instance) -> Any:
        """Return the tile in the dtype and backend of a UDF."""
        dtype, native = instance.declared.input_dtype, self.native.dtype
        if instance.dense != self.backend:
            return self._in(instance.dense).get(instance)
        if instance.backend.is_sparse:
            dense, backend = self._values(instance, dtype), instance.backend
            tile = self._once((dtype, backend), lambda: to_backend(dense, backend, dense.shape))
            return tile.copy() if instance.writable_input else backend.read_only(tile)
        promises, corrects = instance.declared.promises, instance.recipe.corrections is not None
        if not corrects and self.shifts is None:
            if instance.writable_input:
                return self.backend.own_copy(self.native, dtype)
            if dtype == (native.newbyteorder("=") if promises.takes_any_byte_order else native):
                return self.native
            return self._values(instance, dtype)
        if corrects and self.shifts is None and promises.only_sums_frames:
            # the UDF corrects the sum of the frames in place of each frame
            summed = precise(native)
            if summed is not None and not self.backend.on_device:
                return UncorrectedTile(self.native, *self._planes(instance, summed))
        changed = self._values(instance, dtype)
        return changed.copy() if instance.writable_input else changed

    def sums(self, instance: Instance) -> TileSums:
        """Return the sums of the tile in the dtype of a UDF, for all UDFs that share them."""
        from udfdask.udf.tile_sums import TileSums  # most runs do not need it

        dtype = instance.declared.input_dtype
        sums: TileSums = self._once(("sums", dtype), lambda: TileSums(self.get(instance)))
        return sums

    def _once(self, key: Hashable, make: Callable[[], Any]) -> Any:
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]

    def _in(self, backend: DenseBackend) -> DenseTile:
        """Return the same tile in another dense backend.

        It is moved once and converted there: the dtypes of detectors are narrower than those of
        arithmetic, so that fewer bytes travel.
        """

        def move(array: Any) -> Any:
            return backend.read_only(backend.send(self.backend.to_host(array)))

        def moved() -> DenseTile:
            at = self.pixels_at
            pixels_at = None if at is None else lambda places: move(at(places))
            native = move(self.native)
            return DenseTile(native, backend, self.part, pixels_at, self.shifts, self.memory)

        tile: DenseTile = self._once(backend, moved)
        return tile

    def _values(self, instance: Instance, dtype: np.dtype[Any]) -> AnyArray:
        """Return the corrected, shifted and converted tile, read-only."""
        corrects = instance.recipe.corrections is not None
        if not corrects and self.shifts is None and self.native.dtype == dtype:
            return self.native

        def make() -> AnyArray:
            values = self._corrected(instance, dtype) if corrects else self.native
            if self.shifts is not None:
                assert self.memory is not None
                values = shift_tile(values, self.shifts, dtype, self.backend, self.memory)
            elif not corrects:
                values = values.astype(dtype)
            return self.backend.read_only(values)

        values: AnyArray = self._once(dtype, make)
        return values

    def _corrected(self, instance: Instance, dtype: np.dtype[Any]) -> AnyArray:
        planes = self._planes(instance, dtype)
        if self.backend.on_device:
            on_device: AnyArray = correct_on_device(self.native, *planes)
            return on_device
        return correct_tile(self.native, *planes)

    def _planes(
        self, instance: Instance, dtype: np.dtype[Any]
    ) -> tuple[TilePlanes, AnyArray | None]:
        """Return the correction planes of the tile, and the values that they need from outside."""
        corrections, sig = instance.recipe.corrections, instance.recipe.shape.sig
        assert corrections is not None
        planes = tile_planes(corrections, self.part or Slice((0,) * len(sig), sig), dtype, sig)
        if not planes.beyond.size:
            return planes, None
        # single pixels are looked up, so that full frames are never assembled for a patch
        assert self.pixels_at is not None
        return planes, self.pixels_at(planes.beyond)


class SparseTile:
    """A sparse tile, of shape (frames, *sig), or (frames, pixels) of a matrix."""

    def __init__(self, native: Any, sig: tuple[int, ...]) -> None:
        self._native = native
        self._shape = (int(native.shape[0]), *sig)
        self._converted: dict[tuple[np.dtype[Any], Backend], Any] = {}

    def get(self, instance: Instance) -> Any:
        """Return the tile in the dtype and backend of a UDF.

        It is private and writable if the UDF asks for that. Otherwise UDFs share its values and
        indices, but not the object: sparse arrays can be resized or given other values.
        """
        dtype, backend = instance.declared.input_dtype, instance.backend
        if (dtype, backend) not in self._converted:
            native = self._native
            typed = native if native.dtype == dtype else native.astype(dtype)
            self._converted[dtype, backend] = to_backend(typed, backend, self._shape)
        tile = self._converted[dtype, backend]
        return tile.copy() if instance.writable_input else backend.read_only(tile)


def frames_of(stack: Any, backend: Backend, writable: bool = False) -> Iterable[Any]:
    """Return the frames of a stack one by one, of shape sig, or (1, pixels) of a matrix.

    Sparse frames are copied if they must be `writable`; dense ones are writable if the stack is.
    """
    if not isinstance(backend, SparseBackend):
        frames: Iterable[Any] = stack
        return frames
    rows = backend.frames_of_stack(stack)
    sig = rows.sig
    singles = (rows.rows(i, i + 1) for i in range(len(rows)))
    if not backend.is_matrix:
        singles = (to_backend(single.reshape(sig), backend, sig) for single in singles)
    return (single.copy() if writable else backend.read_only(single) for single in singles)
