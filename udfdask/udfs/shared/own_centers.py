"""A center for each frame, and the moments of frames around it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.geometry.labeled_values import (
    check_in_pixels,
    check_is_one_array,
    is_labeled,
    plain_array,
    vectors_of,
)
from udfdask.masks.polar import rounding_matrix
from udfdask.types import AnyArray
from udfdask.udf import UDF
from udfdask.udf.aux_data import AuxData


def as_centers(centers: Any, **common: Any) -> AuxData | None:
    """Return centers as aux data; raise unless there are two numbers for each frame.

    `common` are the parameters for a common center, one of which must be given instead.
    """
    if centers is None:
        return None
    if any(value is not None for value in common.values()):
        both = " and ".join(common)
        raise ArgumentValueError(
            f"centers gives the center of each frame: leave out {both}, or centers"
        )
    if not isinstance(centers, AuxData):
        check_is_one_array("centers", centers, "raw_com")
        check_in_pixels("centers", centers, "raw_com")
        centers = vectors_of(centers, "centers")
        array = _array(plain_array(centers))
        if array.ndim < 1 or array.shape[-1] != 2:
            raise ArgumentValueError(
                f"centers must hold (y, x) for each frame, shape (*nav, 2), not {array.shape}"
            )
        _check_numbers(array.dtype)
        labeled = centers if is_labeled(centers) else array
        centers = UDF.aux_data(labeled, kind="nav", extra_shape=(2,), dtype=array.dtype)
    if centers.kind != "nav" or centers.extra_shape != (2,):
        raise ArgumentValueError(
            "centers must be aux data of kind 'nav' with extra_shape (2,), (y, x) for each frame, "
            f"not of kind {centers.kind!r} with extra_shape {centers.extra_shape}"
        )
    _check_numbers(centers.dtype)
    aux: AuxData = centers
    return aux


def _array(centers: Any) -> Any:
    """Return centers as a NumPy or dask array."""
    if hasattr(centers, "__dask_graph__") and hasattr(centers, "ndim"):
        return centers
    if isinstance(centers, np.ma.MaskedArray):
        return centers  # aux data refuse it, with a remedy
    try:
        array = np.asarray(centers)
    except ValueError:  # ragged
        array = np.asarray(None)
    if array.dtype.kind not in "biufc":
        raise ArgumentTypeError(
            "centers must be an array of numbers (y, x) for each frame, shape (*nav, 2), in "
            f"pixels, not {type(centers).__name__}"
        )
    return array


def _check_numbers(dtype: np.dtype[Any]) -> None:
    """Raise unless centers are real numbers."""
    if dtype.kind not in "iuf":
        raise ArgumentTypeError(f"centers must be real numbers of pixels, not {dtype}")


def own_centers(udf: UDF) -> AnyArray:
    """Return the centers of the frames of the current tile, shape (frames, 2), float64."""
    return np.ascontiguousarray(udf.params.centers, dtype=np.float64)


def given_centers(udf: UDF) -> AnyArray | None:
    """Return the centers of all frames that a run processes, (frames, 2); None if lazy.

    It is None on workers too, where only the centers of the current frames are known.
    """
    aux = udf._kwargs.get("centers")
    if not isinstance(aux, AuxData) or aux.is_lazy or aux.data is None:
        return None
    shape = udf.meta.dataset_shape
    if aux.data.size != 2 * shape.nav.size:  # the plan refuses it with a message of its own
        return None
    rows = np.reshape(aux.data, (-1, 2)).astype(np.float64)
    roi = udf.meta.roi
    return rows if roi is None else rows[np.asarray(roi).reshape(-1)]


def check_centers(
    udf: UDF, outer: float | None, inner: float, stretch: float = 1.0, *, soft: float = 0.0
) -> None:
    """Raise if centers are not those of the scan, or no frame has a pixel between two radii.

    None as the outer radius stands for the whole frame; edges are soft over this number of pixels
    on both sides. The values of lazy centers are not checked.
    """
    _check_layout(udf)
    centers = given_centers(udf)
    if centers is None or not len(centers):
        return
    sig = np.array(tuple(udf.meta.dataset_shape.sig))
    finite = centers[np.isfinite(centers).all(axis=1)]
    if not len(finite):
        raise ArgumentValueError(
            "centers are NaN or infinite for all frames: there must be a frame with a center, in "
            "pixels"
        )
    nearest = finite - np.clip(np.rint(finite), 0, sig - 1)
    farthest = np.maximum(np.abs(finite), np.abs(sig - 1 - finite))
    long = math.sqrt(stretch)
    reached = np.hypot(*farthest.T) * long > inner - soft
    if outer is not None:
        reached &= np.hypot(*nearest.T) <= (outer + soft) * long
    else:
        reached &= np.hypot(*nearest.T) <= 1
    if not reached.any():
        y, x = finite[0].tolist()
        raise ArgumentValueError(
            f"no frame of shape {tuple(sig.tolist())} has a pixel between the radii {inner!r} and "
            f"{outer!r} around its center, the first of which is (y, x) = ({y!r}, {x!r}): centers "
            "and radii are in pixels; correct the centers or the radii"
        )


def _check_layout(udf: UDF) -> None:
    """Raise if the axes of centers are in another order than those of the scan."""
    aux: AuxData = udf._kwargs["centers"]
    nav = tuple(udf.meta.dataset_shape.nav)
    of_scan, of_frames = (*nav, 2), (math.prod(nav), 2)
    if aux.shape not in (of_scan, of_frames, (2 * math.prod(nav),)):
        raise ArgumentValueError(
            f"centers must have the shape {of_scan}, (y, x) for each position of the scan, not "
            f"{aux.shape}"
        )


def mean_center(udf: UDF) -> tuple[float, float]:
    """Return the mean of the centers that are finite; raise if centers are lazy."""
    centers = given_centers(udf)
    if centers is not None:
        finite = centers[np.isfinite(centers).all(axis=1)]
        if len(finite):
            y, x = finite.mean(axis=0).tolist()
            return y, x
    raise ArgumentValueError(
        f"the center of {type(udf).__name__} varies with the scan and is not known before it is "
        "computed: compute centers first, or pass a common center for the picture"
    )


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
