"""Give a chunk to UDFs: in frames, tiles or partitions, dense or sparse."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from udfdask.backends.backend import NUMPY, Backend
from udfdask.backends.sparse_rows import SparseBackend
from udfdask.backends.table import to_backend
from udfdask.chunk.dense_tiles import DenseCutter, DenseTile
from udfdask.chunk.frames import FrameSource, SparseSource
from udfdask.chunk.udf_instance import Instance
from udfdask.geometry.slices import Slice
from udfdask.geometry.tiling import TilingScheme
from udfdask.types import AnyArray
from udfdask.udf import UDFMethod

if TYPE_CHECKING:
    from udfdask.descan.shift_tile import FrameShifts


class SparseCutter:
    """Cuts sparse tiles from a chunk; each is a view of rows of one signal chunk."""

    tiles_are_views = False

    def __init__(self, source: SparseSource, tiling: TilingScheme) -> None:
        self.source = source
        self.tiling = tiling

    def reader(self, part: Slice, block: int) -> Callable[[int, int], SparseTile]:
        """Return a function of first and last row that reads signal chunk `block`."""
        source, sig = self.source, tuple(part.shape)
        place = block if source.n_blocks > 1 else 0

        def read(start: int, stop: int) -> SparseTile:
            return SparseTile(source.sparse_tile(start, stop, place), sig)

        return read

    def frames(self, start: int, stop: int) -> SparseTile:
        """Return the full frames of rows `start` to `stop`."""
        sig = tuple(self.tiling.dataset_shape)
        return SparseTile(self.source.sparse_frames(start, stop), sig)


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


Cutter = DenseCutter | SparseCutter


def process(
    instances: list[Instance], source: FrameSource, chunk: int, shifts: FrameShifts | None = None
) -> None:
    """Run the processing method of every UDF over all frames of a chunk, shifted if asked."""
    for some, cutter in _with_cutters(instances, source, shifts):
        _process_chunk(some, cutter, chunk)


def process_signal_chunk(
    instances: list[Instance], source: FrameSource, chunk: int, block: int
) -> None:
    """Run `process_tile` over signal chunk number `block`, which is all that `source` holds."""
    for some, cutter in _with_cutters(instances, source):
        _process_tiles(some, cutter, chunk, block)


def _with_cutters(
    instances: list[Instance], source: FrameSource, shifts: FrameShifts | None = None
) -> Iterator[tuple[list[Instance], Cutter]]:
    """Yield the UDFs that take dense data, then those that take sparse data, with their cutter."""
    dense, recipe = instances, instances[0].recipe
    sparse: list[Instance] = []
    # changed pixels need dense tiles; a UDF that takes sparse data then gets these as sparse ones
    if isinstance(source, SparseSource) and recipe.corrections is None and shifts is None:
        sparse = [i for i in instances if i.takes_sparse]
        dense = [i for i in instances if not i.takes_sparse]
    if dense:
        yield dense, DenseCutter(source, recipe.tiling, shifts, recipe.corrections is not None)
    if sparse:
        assert isinstance(source, SparseSource)
        yield sparse, SparseCutter(source, recipe.sparse_tiling)


def _process_chunk(instances: list[Instance], cutter: Cutter, chunk: int) -> None:
    """Run the processing method of each UDF over all frames of a chunk."""
    recipe, tiling = instances[0].recipe, cutter.tiling
    tiles, frames, partitions = (
        [i for i in instances if i.declared.method is method]
        for method in (UDFMethod.TILE, UDFMethod.FRAME, UDFMethod.PARTITION)
    )
    full_frame, depth = frames, tiling.frame_depth
    if tiling.whole_frames or not tiles:
        full_frame = tiles + frames  # one pass over the same stacks of frames for both methods
        if cutter.source.n_blocks == 1 and _gets_views(instances, cutter):
            depth = tiling.depth
    else:
        for block in range(recipe.n_blocks):
            _process_tiles(tiles, cutter, chunk, block)
    for start, stop in _stacks(full_frame, chunk, depth):
        _process_full_frames(full_frame, cutter.frames(start, stop), start, stop)
    for contiguous in (False, True):
        some = [i for i in partitions if i.declared.contiguous_nav is contiguous]
        for start, stop in _runs(some, chunk, contiguous):
            _process_full_frames(some, cutter.frames(start, stop), start, stop)


def _gets_views(instances: list[Instance], cutter: Cutter) -> bool:
    """Return whether tiles are views of the blocks, and no UDF gets copies on another device."""
    source = cutter.source
    return cutter.tiles_are_views and all(i.dense == source.dense for i in instances)


def _process_full_frames(
    instances: list[Instance], tile: DenseTile | SparseTile, start: int, stop: int
) -> None:
    """Run the processing method of each UDF over the full frames of rows `start` to `stop`."""
    for instance in instances:
        method = instance.declared.method
        if method is UDFMethod.FRAME:
            _process_frames(instance, tile.get(instance), start)
        else:
            instance.view_rows(start, stop)
            _process_tile(instance, tile, f"process_{method.value}")


def _process_tiles(instances: list[Instance], cutter: Cutter, chunk: int, block: int) -> None:
    """Run `process_tile` over the tiles that lie in one signal chunk."""
    tiling = cutter.tiling
    # Tiles that are copies are no deeper than the cache holds; views may have all frames.
    depth = tiling.depth if _gets_views(instances, cutter) else tiling.gathered_depth
    stacks = list(_stacks(instances, chunk, depth))
    for index, (part, part_block) in enumerate(tiling.sig_parts):
        if part_block != block:
            continue
        copies = [instance.view_part(part, index) for instance in instances]
        read = cutter.reader(part, block)
        for start, stop in stacks:
            tile = read(start, stop)
            for instance in instances:
                instance.view_rows(start, stop)
                _process_tile(instance, tile, "process_tile")
            del tile  # its memory is free before the next tile is read
        for window, copy in itertools.chain(*copies):
            window[...] = copy


def _process_tile(instance: Instance, tile: DenseTile | SparseTile, method: str) -> None:
    """Give a tile to a UDF, or the sums of the tile if it shares them with other UDFs."""
    shares = instance.number in instance.recipe.summed and instance.backend == NUMPY
    # the parameters of a run can change: an instance may decline sums that the plan counted on
    if shares and isinstance(tile, DenseTile) and getattr(instance.udf, "process_sums", None):
        instance.call("process_sums", tile.sums(instance))
    else:
        instance.call(method, tile.get(instance))


def _process_frames(instance: Instance, stack: Any, first: int) -> None:
    """Run `process_frame` over a stack of frames whose first row is `first`."""
    if instance.declared.promises.processes_stacks and not instance.takes_sparse:
        instance.view_rows(first, first + stack.shape[0])
        instance.call("process_stack", stack)
        return
    process_frame = instance.udf.process_frame
    cursor = instance.cursor
    places, rows_by_view = _frame_views(instance, slice(first, first + stack.shape[0]))
    frames = frames_of(stack, instance.backend, instance.writable_input)
    # Three loops, because for most UDFs a frame has no view or one, and each step of Python counts:
    # the maximum of a spectrum takes 1.4 µs, of which a bare loop needs 1.2.
    try:
        if not rows_by_view:
            for row, frame in enumerate(frames, first):
                cursor.start, cursor.stop = row, row + 1
                process_frame(frame)
        elif len(rows_by_view) == 1:
            ((views, name),) = places
            for row, (frame, view) in enumerate(zip(frames, rows_by_view[0], strict=True), first):
                cursor.start, cursor.stop = row, row + 1
                views[name] = view
                process_frame(frame)
        else:
            for row, (frame, *each) in enumerate(zip(frames, *rows_by_view, strict=True), first):
                cursor.start, cursor.stop = row, row + 1
                for (views, name), view in zip(places, each, strict=True):
                    views[name] = view
                process_frame(frame)
    except Exception as error:
        instance.note_origin(error, "process_frame")
        raise


def _frame_views(
    instance: Instance, rows: slice
) -> tuple[list[tuple[dict[str, Any], str]], list[AnyArray]]:
    """Return the attributes that change with each frame, and an array of the values of each.

    They are the views of nav buffers and of aux data.
    """
    places, arrays = [], []
    for name, spec in instance.declared.allocated.items():
        if spec.kind == "nav":
            values = instance.arrays[name][rows]
            # an item of an array without extra axes would be a number, not a view to write to
            arrays.append(values if spec.extra_shape else values[:, np.newaxis])
            places.append((instance.udf.results.__dict__, name))
    for name, array in instance.aux.items():
        values = array[rows]
        arrays.append(values if instance.declared.aux[name].extra_shape else values[:, np.newaxis])
        places.append((instance.udf.params.__dict__, name))
    return places, arrays


def _stacks(instances: list[Instance], chunk: int, depth: int) -> Iterator[tuple[int, int]]:
    """Yield first and last row of each stack of at most `depth` frames."""
    if not instances:
        return
    # all UDFs of the run count: results must not depend on which of them run together in a task
    for first, last in _runs(instances, chunk, instances[0].recipe.contiguous_nav):
        for start in range(first, last, depth):
            yield start, min(start + depth, last)


def _runs(instances: list[Instance], chunk: int, contiguous: bool) -> list[tuple[int, int]]:
    """Return first and last row of the chunk, or of each of its parts with consecutive frames."""
    if not instances:
        return []
    grid = instances[0].recipe.grid
    n_rows = grid.count(chunk)
    rows = grid.rows(chunk) if contiguous else range(n_rows)
    if isinstance(rows, range):
        return [(0, n_rows)]
    breaks = [0, *(np.flatnonzero(np.diff(rows) != 1) + 1).tolist(), n_rows]
    return list(itertools.pairwise(breaks))
