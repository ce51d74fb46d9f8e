"""Shift the entries of sparse frames by whole pixels."""

from __future__ import annotations

from typing import Any

import numpy as np

from udfdask.descan.shift_tile import COPIED, in_planes
from udfdask.types import AnyArray


def moved_entries(
    values: AnyArray, pixels: AnyArray, starts: AnyArray, first: AnyArray, sig: tuple[int, ...]
) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Return values, pixels and starts of shifted frames, given as those of a CSR matrix.

    `first` is where the first pixel of each shifted frame is in its frame, (frames, sig dims), for
    one or two signal axes. Entries that leave the frame are dropped.
    """
    from udfdask.kernels.cpu.shift import move_entries  # loads numba

    kind: Any = COPIED.get(values.dtype.itemsize)
    if kind is None:  # long doubles: entries are numbered, and then taken
        order = np.arange(len(values), dtype=np.int64)
        kept, *moved = moved_entries(order, pixels, starts, first, sig)
        return values[kept], moved[0], moved[1]
    out = np.empty_like(values), np.empty_like(pixels), np.empty_like(starts)
    move_entries(
        _locked(values.view(kind)),
        _locked(pixels),
        _locked(starts),
        in_planes(first),
        *((1,) * (2 - len(sig)) + sig),
        out[0].view(kind),
        *out[1:],
    )
    n = int(out[2][-1])
    return out[0][:n], out[1][:n], out[2]


def _locked(array: AnyArray) -> AnyArray:
    """Return a contiguous read-only array: compiled code only exists for these."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view
