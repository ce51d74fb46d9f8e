"""Read what a DECTRIS master file says: the scan, broken pixels, the flat field.

A master file of an EIGER, ARINA or SINGLA detector links to the files of frames and describes the
detector in the group ``instrument/detector``. NXmx files describe other detectors in the same way.

https://www.dectris.com/support/downloads/header-docs/nexus/,
https://manual.nexusformat.org/classes/applications/NXmx.html
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from udfdask.base.tracebacks import warn_user
from udfdask.corrections import CorrectionSet
from udfdask.io.hdf5_axes import get_item
from udfdask.io.lazy_source import Values

_APPLIED = ("flatfield_correction_applied", "flatfield_applied")


def scan_shape(detector: Any, n_frames: int, *, file: str) -> tuple[int, ...] | None:
    """Return the shape of the scan of frames along one axis: triggers and frames for each trigger.

    Warn and suggest a shape if the file does not say it: if all frames have one trigger, each has
    its own, or some are missing.
    """
    counts = [_number(detector, f"detectorSpecific/{name}") for name in ("ntrigger", "nimages")]
    asked = tuple(n for n in counts if n is not None)
    if len(asked) < 2 or n_frames < 2:
        return None
    if min(asked) > 1 and math.prod(asked) == n_frames:
        return asked
    rows = next(k for k in range(math.isqrt(n_frames), 0, -1) if n_frames % k == 0)
    shape, also = (rows, n_frames // rows), ""
    if min(asked) > 1 or n_frames > 8 * rows**2:  # frames are missing, or there are too many
        side = round(math.sqrt(n_frames))
        shape, also = (asked[0], asked[1]) if min(asked) > 1 else (side, side), ", sync_offset=0"
    warn_user(
        f"{file} does not say the shape of the scan, so its {n_frames} frames are along one axis: "
        f"pass the shape, such as nav_shape={shape}{also}, or nav_shape={n_frames} for one axis"
    )
    return None


def frame_corrections(detector: Any, sig: tuple[int, ...]) -> CorrectionSet | None:
    """Return broken pixels, and the flat field if the detector has not applied it; None without.

    The flat field holds factors: the detector multiplies counts by them.
    """
    broken, flat = _plane(detector, "pixel_mask", sig), None
    if any(_number(detector, name) == 0 for name in _APPLIED):
        flat = _plane(detector, "flatfield", sig)
    broken = broken != 0 if broken is not None and broken.any() else None
    flat = None if flat is None or (flat == 1).all() else flat
    if broken is None and flat is None:
        return None
    return CorrectionSet(gain=flat, excluded_pixels=broken)


def _number(group: Any, name: str) -> int | None:
    item = get_item(group, name)
    if getattr(item, "size", None) != 1 or item.dtype.kind not in "biu":
        return None
    return int(np.ravel(item[()])[0])


def _plane(detector: Any, name: str, sig: tuple[int, ...]) -> Values | None:
    """Return an array of the shape of a frame; None if there is none."""
    for path in (f"detectorSpecific/{name}", name):
        item = get_item(detector, path)
        if getattr(item, "shape", None) == sig and item.dtype.kind in "biuf":
            plane: Values = item[()]
            return plane
    return None
