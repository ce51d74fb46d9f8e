"""The tile shape of a run: chosen once, in the plan, from sizes alone."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from udfdask.arrays.geometry.shapes import Shape
from udfdask.arrays.geometry.slices import Slice

TILE_BYTES = 4 << 20
"""Bytes of a tile by default, as converted: `udfdask.tile-bytes` says otherwise.

It is more than most caches near a core hold, but each tile costs a turn at Python's lock. On two
threads, four times as many tiles took up to 1.6 times as long.
"""

DEVICE_TILE_BYTES = 128 << 20
"""The same on a CUDA device: `udfdask.device-tile-bytes` says otherwise.

Python takes longer to ask for work on a tile than a device to do it on one of a few MiB.
"""

DEPTH_DEFAULT = 16
"""Frames of a tile, at least, where frames are cut into parts."""

WHOLE_DEPTH = 4
"""Whole frames that have to fit a tile, or they are cut into parts of more frames."""


@dataclass(frozen=True, kw_only=True)
class TilingScheme:
    """How the frames of a chunk are cut into tiles.

    It is a sequence of the signal slices, in the order in which they are processed.
    """

    sig_chunks: tuple[tuple[int, ...], ...]
    """Chunk sizes along each signal axis, in pixels; a tile never straddles a chunk border."""
    sig_shape: tuple[int, ...]
    """Largest signal part of a tile, in pixels along each axis."""
    depth: int
    """Largest number of frames in a tile."""
    gathered_depth: int
    """The same where the frames of a tile do not lie together in memory, and are copied."""
    frame_depth: int
    """Largest number of whole frames assembled at a time."""

    def __getstate__(self) -> dict[str, Any]:
        return uncached(self)

    @cached_property
    def sig_parts(self) -> tuple[tuple[Slice, int], ...]:
        """Every signal slice, with the number of the signal chunk that it lies in."""
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
            for piece in itertools.product(*cuts):
                shape = Shape([n for _, n in piece], sig_dims=len(piece))
                parts.append((Slice([o for o, _ in piece], shape), number))
        return tuple(parts)

    @cached_property
    def whole_frames(self) -> bool:
        """Whether each tile holds whole frames."""
        return len(self.sig_parts) == 1

    @property
    def shape(self) -> Shape:
        """Shape of the largest tile, (depth, *sig part)."""
        return Shape((self.depth, *self.sig_shape), sig_dims=len(self.sig_shape))

    @property
    def dataset_shape(self) -> Shape:
        """Shape of a frame."""
        return Shape([sum(c) for c in self.sig_chunks], sig_dims=len(self.sig_chunks))

    def __len__(self) -> int:
        return len(self.sig_parts)

    def __getitem__(self, index: int) -> Slice:
        return self.sig_parts[index][0]


def uncached(value: Any) -> dict[str, Any]:
    """Return the fields of a frozen value, of which another process makes the same value.

    Tasks fill its caches while other threads of the worker pickle it: Python cannot pickle a
    dictionary to which something is added meanwhile.
    """
    return {field.name: getattr(value, field.name) for field in fields(value)}


def choose_tiling(
    sig_chunks: Sequence[Sequence[int]],
    *,
    itemsize: int,
    max_frames: int,
    tile_bytes: int,
    depth: float = np.inf,
    total_size: float = np.inf,
    whole_frames: bool = False,
    keep_frames: bool = False,
    streamed: bool = False,
) -> TilingScheme:
    """Return the tiles for chunks of such sizes.

    `itemsize` is that of the converted data in bytes, `max_frames` the frames of the largest
    chunk, `tile_bytes` the share of the cache; `depth` (frames) and `total_size` (bytes) are the
    smallest preferences of the UDFs.

    Whole frames stay together while a few of them fit, with `keep_frames` while one does; else
    leading signal axes are cut first, which keeps the parts contiguous. `whole_frames` never cuts
    them. A `streamed` tile need not fit the cache: it is as deep as the preferences allow.
    """
    budget = max(1, int(min(tile_bytes, total_size)) // itemsize)
    block = [max(1, *sizes) for sizes in sig_chunks]
    frame = math.prod(sum(sizes) for sizes in sig_chunks) or 1
    most = max(1, int(min(depth, max_frames)))
    frame_depth = max(1, min(most, budget // frame))
    sig_shape = list(block)
    if whole_frames:
        chosen = frame_depth
    else:
        together = 1 if keep_frames else min(most, WHOLE_DEPTH)
        single = all(len(sizes) == 1 for sizes in sig_chunks)
        least = min(most, DEPTH_DEFAULT)
        if math.prod(block) * least > budget and not (single and frame * together <= budget):
            sig_shape = _cut(block, max(1, budget // least))
        chosen = max(1, min(most, budget // math.prod(sig_shape)))
    preferred = total_size / (itemsize * (frame if whole_frames else math.prod(sig_shape)))
    return TilingScheme(
        sig_chunks=(
            tuple((sum(sizes),) for sizes in sig_chunks)
            if whole_frames
            else tuple(tuple(sizes) for sizes in sig_chunks)
        ),
        sig_shape=tuple(sum(s) for s in sig_chunks) if whole_frames else tuple(sig_shape),
        depth=max(chosen, int(min(most, preferred))) if streamed else chosen,
        gathered_depth=chosen,
        frame_depth=frame_depth,
    )


def whole_tiling(
    sig_chunks: Sequence[Sequence[int]],
    *,
    itemsize: int,
    max_frames: int,
    depth: float = np.inf,
    total_size: float = np.inf,
    whole_frames: bool = False,
) -> TilingScheme:
    """Return the tiles of sparse data: signal chunks are not cut, since a tile is no copy.

    The arguments are those of `choose_tiling`.
    """
    sizes = [[sum(s)] for s in sig_chunks] if whole_frames else sig_chunks
    largest = [max(1, *s) for s in sizes]
    most = max(1, min(depth, max_frames, total_size // (itemsize * math.prod(largest))))
    return TilingScheme(
        sig_chunks=tuple(tuple(s) for s in sizes),
        sig_shape=tuple(largest),
        depth=int(most),
        gathered_depth=int(most),
        frame_depth=int(most),
    )


def _cut(block: Sequence[int], pixels: int) -> list[int]:
    """Return the largest part of a block of at most so many pixels, leading axes cut first."""
    part = list(block)
    for axis in range(len(part)):
        inner = math.prod(part[axis + 1 :])
        if inner * part[axis] <= pixels:
            break
        part[axis] = max(1, pixels // inner)
    return part
