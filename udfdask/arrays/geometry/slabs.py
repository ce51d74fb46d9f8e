"""Cut boxes of scan positions into slabs whose windows of frames are made at a time."""

from __future__ import annotations

import itertools
import math

from udfdask.arrays.geometry.halo import Box, Halo

SLAB_BYTES = 8 << 20
"""Size of the frames of a slab with their neighbors, in bytes, unless its margins need more."""


def slabs(halo: Halo, box: Box, frame_bytes: int) -> list[Box]:
    """Return the slabs of a box, for frames of this size.

    Windows of neighboring slabs overlap, and the frames in both are made twice. So a slab has at
    least as many positions along an axis as its margins.
    """
    around, rest = halo.around(box), SLAB_BYTES
    cuts = []
    for axis, ((first, stop), (before, after)) in enumerate(zip(box, halo.sides, strict=True)):
        line = max(1, frame_bytes * math.prod(around[axis + 1 :]))
        n = max(1, before + after, rest // line - before - after)
        cuts.append([(start, min(start + n, stop)) for start in range(first, stop, n)])
        # only if one line of positions is too large is it cut as well
        rest = max(1, rest // (min(n, stop - first) + before + after))
    return list(itertools.product(*cuts))
