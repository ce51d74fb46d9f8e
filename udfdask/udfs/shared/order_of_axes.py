"""Notice axes whose names contradict the order (y, x) that UDFs of vectors expect."""

from __future__ import annotations

import re
from collections.abc import Sequence

from udfdask.arrays.geometry.axes import Axis

_DIRECTION = re.compile(r"(?:^|[^a-z])[a-z]?([xy])$")
"""Names of an axis along x or y: x, kx, qx, scan_x, k_y; not energy or index."""


def wrong_order(axes: Sequence[Axis], sig_dims: int = 2) -> str:
    """Return a warning if the names of axes say that x comes before y; else an empty text.

    Vectors over a scan take the last axis but one as y and the last axis as x, both of the scan
    and of frames.
    """
    nav, sig = axes[:-sig_dims], axes[-sig_dims:]
    scan, frame = _directions(nav), _directions(sig)
    if frame != "xy" and not (scan == "xy" and frame == "yx"):
        return ""
    nav_names, sig_names = [a.name for a in nav], [a.name for a in sig]
    better = [
        *(nav_names[::-1] if scan == "xy" else nav_names),
        *(sig_names[::-1] if frame == "xy" else sig_names),
    ]
    return (
        f"CoMUDF takes the axes of the scan ({', '.join(nav_names)}) and of frames "
        f"({', '.join(sig_names)}) as (y, x), but their names say that x comes first: divergence, "
        "curl and regression mix the components, or the components y and x have the wrong labels. "
        f"Transpose the data to ({', '.join(better)})"
    )


def _directions(axes: Sequence[Axis]) -> str:
    """Return "yx" or "xy" for two axes with such names, otherwise an empty text."""
    if len(axes) != 2:
        return ""
    found = [_DIRECTION.search(axis.name.lower()) for axis in axes]
    letters = "".join(match[1] for match in found if match)
    return letters if letters in ("yx", "xy") else ""
