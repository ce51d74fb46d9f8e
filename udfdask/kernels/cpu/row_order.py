"""Whether compressed rows are what kernels rely on: pixels in order, none twice, none outside."""

from __future__ import annotations

from udfdask.kernels.cpu.compile import kernel
from udfdask.types import AnyArray


def in_order(starts: AnyArray, pixels: AnyArray, width: int) -> bool:
    """Return whether the pixels of each row increase and are less than `width`.

    Those of row i go from ``starts[i]`` up to ``starts[i + 1]``, int64. `pixels` have four or eight
    bytes, and are read as numbers without a sign.
    """
    unsigned = pixels.view(f"u{pixels.itemsize}")
    return bool(_increase(starts, unsigned, unsigned.dtype.type(width - 1)))


@kernel
def _increase(starts: AnyArray, pixels: AnyArray, last: int) -> bool:
    """Return whether pixels increase in each row, up to `last` at most."""
    for i in range(len(starts) - 1):
        row = pixels[starts[i] : starts[i + 1]]
        if len(row) and row[len(row) - 1] > last:
            return False
        before, after = row[: len(row) - 1], row[1:]
        falls = False
        for k in range(len(after)):  # all of them: a way out would cost more than it spares
            falls |= before[k] >= after[k]
        if falls:
            return False
    return True
