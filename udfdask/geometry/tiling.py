"""Choose the tile shape of a run: once, in the plan, from sizes alone."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from udfdask.geometry.shapes import Shape
from udfdask.geometry.slices import Slice

TILE_BYTES = 4 << 20
"""Default size of a tile in bytes, as converted; the setting is `udfdask.tile-bytes`."""

DEVICE_TILE_BYTES = 128 << 20
"""Default size of a tile on a CUDA device; the setting is `udfdask.device-tile-bytes`.

For a tile of a few MiB, Python takes longer to launch the work than the device takes to do it.
"""

MIN_CUT_DEPTH = 16
"""Smallest number of frames in a tile if frames are cut into parts."""

MIN_FULL_FRAMES = 4
"""If fewer full frames fit a tile, frames are cut into parts, so that a tile has more frames."""


@dataclass(frozen=True, kw_only=True)
class TilingScheme:
    """The shape of the tiles of a chunk: a sequence of signal slices, in processing order.

    Examples
    --------
    >>> import dask.array as da, udfdask as ud
    >>> class PartsUDF(ud.UDF):
    ...     def get_result_buffers(self):
    ...         return {"parts": self.buffer(kind="nav", dtype="int64")}
    ...     def process_tile(self, tile):
    ...         self.results.parts[:] = len(self.meta.tiling_scheme)  # tiles of each frame
    >>> ud.run_udf(da.ones((2, 4, 4)), PartsUDF())["parts"].compute()
    array([1, 1])
    """

    sig_chunks: tuple[tuple[int, ...], ...]
    """Chunk sizes along each signal axis, in pixels; a tile never crosses a chunk border."""
    sig_shape: tuple[int, ...]
    """Largest signal part of a tile, in pixels along each axis."""
    depth: int
    """Largest number of frames in a tile."""
    gathered_depth: int
    """Largest number of frames in a tile whose frames must be copied to be contiguous."""
    frame_depth: int
    """Largest number of full frames that are assembled at a time."""

    def __getstate__(self) -> dict[str, Any]:
        return without_caches(self)

    @cached_property
    def sig_parts(self) -> tuple[tuple[Slice, int], ...]:
        """Every signal slice, with the number of its signal chunk."""
        parts = []
        starts = [list(itertools.accumulate(c, initial=0))[:-1] for c in self.sig_chunks]
        blocks = itertools.product(*(range(len(c)) for c in self.sig_chunks))
        for number, block in enumerate(blocks):
            cuts = []
            for axis, i in enumerate(block):
                first, size = starts[axis][i], self.sig_chunks[axis][i]
                step = max(1, self.sig_shape[axis])
                offsets = range(0, size, step) or range(1)
                cuts.append([(first + o, min(step, size - o)) for o in offsets])
            for part in itertools.product(*cuts):
                shape = Shape([n for _, n in part], sig_dims=len(part))
                parts.append((Slice([o for o, _ in part], shape), number))
        return tuple(parts)

    @cached_property
    def whole_frames(self) -> bool:
        """Whether each tile consists of full frames."""
        return len(self.sig_parts) == 1

    @cached_property
    def uncut(self) -> TilingScheme:
        """The scheme of full frames, which methods for frames and partitions see: one slice."""
        if self.whole_frames:
            return self
        frame = tuple(self.dataset_shape)
        return replace(
            self,
            sig_chunks=tuple((n,) for n in frame),
            sig_shape=frame,
            depth=self.frame_depth,
            gathered_depth=self.frame_depth,
        )

    @property
    def shape(self) -> Shape:
        """Shape of the largest tile, (depth, *part of sig)."""
        return Shape((self.depth, *self.sig_shape), sig_dims=len(self.sig_shape))

    @property
    def dataset_shape(self) -> Shape:
        """Shape of a frame."""
        return Shape([sum(c) for c in self.sig_chunks], sig_dims=len(self.sig_chunks))

    def __len__(self) -> int:
        return len(self.sig_parts)

    def __getitem__(self, index: int) -> Slice:
        return self.sig_parts[index][0]


def without_caches(value: Any) -> dict[str, Any]:
    """Return the fields of a frozen dataclass, to pickle it while a thread may fill its caches."""
    return {field.name: getattr(value, field.name) for field in fields(value)}


@dataclass(frozen=True, slots=True, kw_only=True)
class TilePreferences:
    """The tiles that a UDF asks for, or that suit several."""

    depth: float = np.inf
    """Largest number of frames in a tile."""
    total_size: float = np.inf
    """Largest size of a tile in bytes."""
    least_depth: float = 1
    """Number of frames that a tile should have at least: frames are cut into parts for it."""
    view_size: float = 1
    """Size in bytes that a tile may have if it is a view, even if the setting is smaller."""
    whole_frames: bool = False
    """Whether tiles must hold whole frames."""

    @staticmethod
    def common(every: Sequence[TilePreferences]) -> TilePreferences:
        """Return the preferences that suit all of some UDFs."""
        return TilePreferences(
            depth=min(one.depth for one in every),
            total_size=min(one.total_size for one in every),
            least_depth=max(one.least_depth for one in every),
            view_size=min(one.view_size for one in every),
            whole_frames=any(one.whole_frames for one in every),
        )


def choose_tiling(
    sig_chunks: Sequence[Sequence[int]],
    tiles: TilePreferences,
    *,
    itemsize: int,
    max_frames: int,
    tile_bytes: int,
    keep_frames: bool = False,
    streamed: bool = False,
) -> TilingScheme:
    """Return the tiling for chunks with these signal sizes.

    `itemsize` is that of the converted data, `max_frames` that of the largest chunk. Frames are not
    cut while `MIN_FULL_FRAMES` and the least depth fit a tile, with `keep_frames` while one fits,
    and never for whole frames. A `streamed` tile may exceed `tile_bytes`: each value is read once,
    so that nothing has to stay in a cache.
    """
    if tiles.whole_frames:
        sig_chunks = [(sum(sizes),) for sizes in sig_chunks]
    budget = max(1, int(min(tile_bytes, tiles.total_size)) // itemsize)  # values in a tile
    part = [max(1, *sizes) for sizes in sig_chunks]
    frame = math.prod(sum(sizes) for sizes in sig_chunks) or 1
    max_depth = max(1, int(min(tiles.depth, max_frames)))
    if not tiles.whole_frames:
        full_frames = 1 if keep_frames else min(max_depth, max(MIN_FULL_FRAMES, tiles.least_depth))
        one_chunk = all(len(sizes) == 1 for sizes in sig_chunks)
        min_depth = int(min(max_depth, max(MIN_CUT_DEPTH, tiles.least_depth)))
        if math.prod(part) * min_depth > budget and not (
            one_chunk and frame * full_frames <= budget
        ):
            part = _cut(part, max(1, budget // min_depth))
    fitting = max(1, min(max_depth, budget // math.prod(part)))
    limit = tiles.total_size if streamed else min(tiles.view_size, tiles.total_size)
    preferred = limit / (itemsize * math.prod(part))
    return TilingScheme(
        sig_chunks=tuple(tuple(sizes) for sizes in sig_chunks),
        sig_shape=tuple(part),
        depth=max(fitting, int(min(max_depth, preferred))),
        gathered_depth=fitting,
        frame_depth=max(1, min(max_depth, budget // frame)),
    )


def sparse_tiling(
    sig_chunks: Sequence[Sequence[int]],
    tiles: TilePreferences = TilePreferences(),  # it is frozen
    *,
    itemsize: int,
    max_frames: int,
) -> TilingScheme:
    """Return the tiling of sparse tiles: views, for which signal chunks are not cut."""
    sizes = [[sum(s)] for s in sig_chunks] if tiles.whole_frames else sig_chunks
    part = [max(1, *s) for s in sizes]
    fitting = tiles.total_size // (itemsize * math.prod(part))
    depth = int(max(1, min(tiles.depth, max_frames, fitting)))
    return TilingScheme(
        sig_chunks=tuple(tuple(s) for s in sizes),
        sig_shape=tuple(part),
        depth=depth,
        gathered_depth=depth,
        frame_depth=depth,
    )


def _cut(block: Sequence[int], pixels: int) -> list[int]:
    """Return the largest part of a block with at most `pixels` pixels, leading axes cut first."""
    part = list(block)
    for axis in range(len(part)):
        inner = math.prod(part[axis + 1 :])
        if inner * part[axis] <= pixels:
            break
        part[axis] = max(1, pixels // inner)
    return part
