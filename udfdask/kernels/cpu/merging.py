"""Merge the moments of pixels over some frames with those over other frames.

The sum of n values is ``n * origin + excess``, `varsum` that of their squared deviations.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from udfdask.kernels.cpu.compile import lean_kernel, rounding_inner_kernel
from udfdask.types import AnyArray


@lean_kernel
def merge_columns(
    before: int,
    origin: AnyArray,
    excess: AnyArray,
    varsum: AnyArray,
    count: int,
    more_origin: AnyArray,
    more_excess: AnyArray,
    more_varsum: AnyArray,
) -> None:
    """Merge the moments of `count` rows into those of `before` other rows, at least one."""
    for j in range(len(origin)):
        shift = more_origin[j] - origin[j]
        excess[j], varsum[j] = merged(
            before, count, shift, excess[j], varsum[j], more_excess[j], more_varsum[j]
        )


@rounding_inner_kernel
def merged(
    before: int,
    count: int,
    shift: float,
    excess: float,
    varsum: float,
    more_excess: float,
    more_varsum: float,
) -> Any:
    """Return excess and varsum of `before` and `count` frames, whose origins differ by `shift`.

    The formula of Chan, Golub and LeVeque (1979) needs the difference of two means. The difference
    of similar origins is exact, which keeps its precision.
    """
    if before == 0:
        return more_excess, more_varsum
    n, m = np.float64(before), np.float64(count)
    # for a constant pixel, `more * n` and `excess * m` are equal: its variance is exactly 0
    scale, weight = 1.0 / (n * m), n * m / (n + m)
    difference = shift + (more_excess * n - excess * m) * scale
    return (
        excess + (more_excess + shift * m),
        varsum + (more_varsum + difference * difference * weight),
    )
