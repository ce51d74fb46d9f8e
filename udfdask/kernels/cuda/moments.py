"""Moments of pixels over frames, of tiles and of partial results."""

from __future__ import annotations

from typing import Any

from udfdask.arrays.backends.device import array_module
from udfdask.kernels.cuda.blocks import blocks_of
from udfdask.kernels.cuda.squares import squared
from udfdask.kernels.cuda.variance import group_depth, group_moments, has_kernels, joined
from udfdask.kernels.moment_arrays import LARGEST_ORIGIN, Moments


def add_moments(tile: Any, before: int, moments: Moments) -> None:
    """Merge the frames of a tile, shape (n, *part), into moments of `before` others."""
    if not tile.size:
        return
    xp, count = array_module(tile), int(tile.shape[0])
    if has_kernels(xp, tile):
        groups = group_moments(xp, tile, group_depth(count, tile.size // count))
        merge_moments(before, moments, count, joined(*groups))
        return
    dtype = moments.excess.dtype
    for block in blocks_of(tile, dtype.itemsize):
        count = int(block.shape[0])
        first = block[0].astype(dtype)
        origin = xp.where(xp.abs(first) <= LARGEST_ORIGIN, first, dtype.type(0))
        deviations = block.astype(dtype) - origin
        excess = deviations.sum(axis=0)
        deviations -= excess / count
        more = Moments(origin, excess, squared(deviations).sum(axis=0))
        merge_moments(before, moments, count, more)
        before += count


def merge_moments(before: int, moments: Moments, count: int, more: Moments) -> None:
    """Merge moments of `count` frames into those of `before` others."""
    if not count:
        return
    if not before:
        for mine, other in zip(moments, more, strict=True):
            mine[...] = other
        return
    origin, excess, varsum = moments
    moved = more.origin - origin
    apart = moved + more.excess / count - excess / before
    varsum += more.varsum + squared(apart) * (before * count / (before + count))
    excess += more.excess + count * moved
