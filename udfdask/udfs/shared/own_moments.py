"""Sums and first moments of tiles, around a center of its own for each frame."""

from __future__ import annotations

from typing import Any

import numpy as np

from udfdask.masks.ellipses import rounding_matrix
from udfdask.types import AnyArray
from udfdask.udf import UDF


def add_own_moments(
    udf: UDF,
    tile: Any,
    centers: AnyArray,
    radii: tuple[float | None, float],
    out: AnyArray,
) -> None:
    """Add sum(I), sum(y * I) and sum(x * I) of each frame to `out`, shape (frames, 3), float64.

    The pixels are those with ``inner < d <= outer`` around the center of the frame, or with
    ``d <= outer`` if the inner radius is None. `tile` is dense or sparse, and real.
    """
    matrix = rounding_matrix(udf._kwargs.get("stretch", 1.0), udf._kwargs.get("stretch_angle", 0.0))
    origin = udf.meta.sig_slice.origin
    if udf.meta._backend.is_sparse:
        from udfdask.kernels.cpu.centered_moments import add_entry_moments_about
        from udfdask.kernels.cpu.sparse_sums import entries_of

        width = udf.meta.sig_slice.shape[1]
        add_entry_moments_about(entries_of(tile), origin, width, centers, matrix, radii, out)
    elif tile.size:
        from udfdask.kernels.cpu.centered_moments import add_moments_about

        add_moments_about(tile, origin, centers, matrix, radii, out)


def add_own_sums(
    udf: UDF,
    tile: Any,
    centers: AnyArray,
    radii: tuple[float | None, float],
    out: AnyArray,
) -> None:
    """Add sum(I) of each frame to `out`, shape (frames,); complex numbers are allowed."""
    moments = np.zeros((len(centers), 3))
    if np.dtype(tile.dtype).kind != "c":
        add_own_moments(udf, tile, centers, radii, moments)
        out += moments[:, 0].astype(out.dtype)
        return
    add_own_moments(udf, tile.real, centers, radii, moments)
    imaginary = np.zeros((len(centers), 3))
    add_own_moments(udf, tile.imag, centers, radii, imaginary)
    out += (moments[:, 0] + 1j * imaginary[:, 0]).astype(out.dtype)
