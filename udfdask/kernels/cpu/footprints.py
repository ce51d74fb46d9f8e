"""Add frames at their places on a grid."""

from __future__ import annotations

from typing import Any

from udfdask.kernels.numba_internals.compile import contracting_kernel


@contracting_kernel
def add_footprints(total: Any, starts: Any, places: Any, footprints: Any) -> None:
    """Add footprints, shape (frames, places), to a flat `total` at ``start + places``, int64."""
    for f in range(len(footprints)):
        start, footprint = starts[f], footprints[f]
        for k in range(len(places)):
            total[start + places[k]] += footprint[k]
