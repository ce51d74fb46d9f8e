"""Choose which small chunks are joined, so that one task processes several of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from dask.utils import parse_bytes

from udfdask.errors import ArgumentTypeError, ArgumentValueError

Chunks = tuple[tuple[int, ...], ...]
"""The sizes of the chunks along each axis."""


def check_merge_small(value: Any) -> int:
    """Return the least size of a joined chunk in bytes."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer, str)):
        raise ArgumentTypeError(
            f"merge_small must be a number of bytes or a text such as '64 MiB', not {value!r}"
        )
    try:
        size = parse_bytes(value if isinstance(value, str) else int(value))
    except (ValueError, OverflowError) as error:
        raise ArgumentValueError(
            f"merge_small={value!r} is not a size: write a number of bytes or a text such as "
            "'64 MiB'"
        ) from error
    if size < 1:
        raise ArgumentValueError(f"merge_small must be at least 1 byte, not {value!r}")
    return size


def joined_chunks(chunks: Chunks, itemsize: int, least: int) -> Chunks:
    """Return the chunks after joining neighbors until each has at least `least` bytes.

    Neighbors along the last axis are joined first. An earlier axis follows if the chunks are still
    smaller when the later axes are whole. So frames become whole before positions are joined, and
    a joined chunk has neighboring positions of the scan. A smaller rest at the end of an axis is
    joined too: chunks that were smaller than `least` bytes become smaller than three times that.
    """
    joined = list(chunks)
    for axis in reversed(range(len(chunks))):
        others = math.prod(max(c, default=0) for k, c in enumerate(joined) if k != axis)
        needed = -(-least // max(1, others * itemsize))
        joined[axis] = _join_axis(chunks[axis], needed)
        if len(joined[axis]) > 1:
            break
    return tuple(joined)


def _join_axis(sizes: Sequence[int], needed: int) -> tuple[int, ...]:
    """Return the sizes of the joined chunks of one axis, each at least `needed` positions long."""
    joined: list[int] = []
    current = 0
    for size in sizes:
        current += size
        if current >= needed:
            joined.append(current)
            current = 0
    if current and joined:
        joined[-1] += current
    elif current or not joined:
        joined.append(current)
    return tuple(joined)
