"""Find the center of a diffraction pattern."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from typing import Any, Literal, get_args

import numpy as np

from udfdask.backends.table import to_host
from udfdask.base.types import AnyArray
from udfdask.errors import ArgumentTypeError, ArgumentValueError, UDFWarning
from udfdask.masks import checks
from udfdask.masks.polar import distance
from udfdask.udfs.shared.built_in import check_choice
from udfdask.udfs.shared.center_of_symmetry import center_of_symmetry
from udfdask.udfs.shared.geometry_parameters import check_position

CenterMethod = Literal["symmetry", "com"]
"""Ways to find a center."""

BLUR = 1.0
"""Standard deviation by which patterns are blurred, in pixels: then noise counts less."""

_SUM_FIRST = "run a SumUDF first: {}(run_udf(opened, SumUDF())['intensity'])"


def find_center(
    pattern: Any,
    *,
    method: CenterMethod = "symmetry",
    mask: Any = None,
    radius: float | None = None,
    start: Any = None,
) -> tuple[float, float]:
    """Find the center of a diffraction pattern, to a part of a pixel.

    With ``method="symmetry"`` it is the point around which the pattern is most similar to itself
    turned by 180 degrees (Friedel's law), near the center of the background between the disks: the
    beam can be weak or hidden. With ``method="com"`` it is the center of mass, which is better for
    a single disk that is not symmetric.

    Parameters
    ----------
    pattern : array-like of real numbers, shape (y, x)
        Mean or sum of the frames, an array, DataArray or signal; a lazy one is computed. Pixels
        that are NaN or infinite are not used.
    method : {"symmetry", "com"}
        What the center is.
    mask : array-like of bool, shape (y, x), optional
        True for pixels to use, False for those to ignore, such as a beam stop or broken pixels.
    radius : float, optional
        For ``method="com"``: radius of the disk whose pixels are used, in pixels. It is moved until
        its center is the center of mass. By default, all pixels are used.
    start : tuple of float, optional
        For a `radius`: where to begin, (y, x), in pixels; by default at the brightest place.

    Returns
    -------
    tuple of two floats
        The center (cy, cx), in pixels, also if the pattern has axes with units.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If `pattern` is not a 2-D array of real numbers with different values, if it has no center
        of symmetry, or if another argument is invalid.

    Warns
    -----
    UDFWarning
        If the center is not sure: the background has another one, or several are about equal.

    Notes
    -----
    Pixels that are much darker than the background around them, such as a beam stop, are not used.
    The similarity is the correlation coefficient of the square roots of the intensities, over all
    pairs of opposite pixels; single bright pixels are cut. The maximum is found on a grid of half
    pixels, and between these by a paraboloid.

    Examples
    --------
    >>> import numpy as np
    >>> from udfdask.udfs import find_center
    >>> y, x = np.mgrid[:48, :64]
    >>> d = np.hypot(y - 20.3, x - 33.8)
    >>> pattern = 100 * np.exp(-(d**2) / 8) + 10 * np.exp(-((d - 14) ** 2) / 6)
    >>> cy, cx = find_center(pattern)
    >>> print(round(cy, 1), round(cx, 1))
    20.3 33.8
    """
    check_choice("method", method, get_args(CenterMethod))
    values, usable = read_pattern(pattern, mask, "find_center")
    if method == "com":
        return _center_of_mass(values, usable, radius, start)
    for name, given in (("radius", radius), ("start", start)):
        if given is not None:
            raise ArgumentValueError(f'{name} is for method="com": pass that too, or mask=')
    calm = _calm(values, usable)
    center, similarity, is_found, is_sure = center_of_symmetry(calm, usable, 8 * math.pi * BLUR**2)
    if not is_found:
        raise ArgumentValueError(
            "pattern has no center of symmetry: the correlation with its own inversion is "
            f'{similarity:.2g} at most; ignore asymmetric parts with mask=, or use method="com"'
        )
    if not is_sure:
        warnings.warn(
            f"find_center is not sure of (y, x) = ({center[0]:.1f}, {center[1]:.1f}): the "
            f"correlation with the inversion is {similarity:.2f}, but the background has another "
            "center, or none. Exclude parts that are not symmetric with mask=, or pass "
            'method="com" with radius= and start=',
            UDFWarning,
            stacklevel=2,
        )
    return center


def read_pattern(pattern: Any, mask: Any, caller: str) -> tuple[AnyArray, AnyArray]:
    """Return the pattern as float64 with 0 in place of unused pixels, and which are used.

    `caller` is the name of the function, for errors.
    """
    kind, sum_first = type(pattern).__name__, _SUM_FIRST.format(caller)
    if hasattr(pattern, "array") and hasattr(pattern, "sig_dims"):  # an opened file
        raise ArgumentTypeError(f"pattern must be one image, not {kind}: {sum_first}")
    if isinstance(pattern, Mapping):  # results by name
        buffers = getattr(pattern, "buffers", {})
        images = [name for name, spec in buffers.items() if spec.kind == "sig"]
        remedy = f"pass {caller}(result[{images[0]!r}])" if images else sum_first
        raise ArgumentTypeError(f"pattern must be one image, not {kind}: {remedy}")
    values = _array("pattern", pattern)
    if values.dtype.kind not in "biuf":
        raise ArgumentTypeError(f"pattern must hold real numbers, not {kind} of {values.dtype}")
    if values.ndim != 2:
        raise ArgumentValueError(
            f"pattern must be one image, shape (y, x), not {values.shape}: pass the mean or the "
            f"sum of the frames; {sum_first}"
        )
    if not values.size:
        raise ArgumentValueError(f"pattern has no pixels: its shape is {values.shape}")
    values = values.astype(np.float64)
    usable = np.isfinite(values)
    if mask is not None:
        chosen = _array("mask", mask)
        if chosen.dtype.kind not in "biu":
            raise ArgumentTypeError(f"mask must be an array of bool, not of dtype {chosen.dtype}")
        if chosen.shape != values.shape:
            raise ArgumentValueError(f"mask has the shape {chosen.shape}, pattern {values.shape}")
        usable &= chosen.astype(bool)
    if not usable.any():
        source = "pattern has" if mask is None else "mask leaves"
        raise ArgumentValueError(f"{source} no finite pixel")
    if not np.ptp(values[usable]):
        raise ArgumentValueError(f"pattern is flat: all pixels have the value {values[usable][0]}")
    return np.where(usable, values, 0.0), usable


def _array(name: str, given: Any) -> AnyArray:
    """Return an array, signal or DataArray, also lazy or sparse, as a NumPy array."""
    if hasattr(given, "_deepcopy_with_new_data"):  # a signal of HyperSpy
        given = given.data
    if isinstance(given, np.ma.MaskedArray):
        given = np.ma.filled(given.astype(np.result_type(given.dtype, np.float32)), np.nan)
    if hasattr(given, "__dask_graph__"):
        given = given.compute()
    try:
        return to_host(given)
    except ValueError as error:
        raise ArgumentTypeError(f"{name} must be an array: {error}") from None


def _calm(values: AnyArray, usable: AnyArray) -> AnyArray:
    """Return square roots of intensities, without single bright pixels and with less noise."""
    from scipy.ndimage import gaussian_filter, maximum_filter

    above = np.where(usable, values - values[usable].min(), 0.0)
    around = np.arange(9).reshape(3, 3) != 4
    calm = np.minimum(above, maximum_filter(above, footprint=around, mode="constant"))
    if calm[usable].min() == calm[usable].max():  # there are only single pixels
        calm = above
    # the mean over neighbors that are used
    smooth, share = (
        gaussian_filter(one, BLUR, mode="constant") for one in (np.sqrt(calm), usable.astype(float))
    )
    blurred: AnyArray = np.divide(smooth, share, out=np.zeros(share.shape), where=usable)
    return blurred


def _center_of_mass(
    values: AnyArray, usable: AnyArray, radius: Any, start: Any
) -> tuple[float, float]:
    """Return the center of mass of all pixels, or of those in a disk that follows it."""
    from scipy.ndimage import uniform_filter

    if radius is None:
        if start is not None:
            raise ArgumentValueError("start needs a radius: pass radius too, or leave out start")
        return _mass_center(values)
    r = checks.radius("radius", radius, positive=True, finite=False)
    ny, nx = values.shape
    if start is None:  # the brightest place
        start = divmod(int(np.argmax(uniform_filter(values, 5, mode="constant"))), nx)
    center = check_position("start", start)
    for _ in range(100):
        inside = usable & (distance(center[1], center[0], nx, ny) <= r)
        if not inside.any():
            raise ArgumentValueError(
                f"no pixel that is used lies within radius={radius!r} pixels of (y, x) = "
                f"({center[0]:.6g}, {center[1]:.6g})"
            )
        before, center = center, _mass_center(np.where(inside, values, 0.0))
        if math.dist(before, center) < 1e-4:
            break
    return center


def _mass_center(values: AnyArray) -> tuple[float, float]:
    total = float(values.sum())
    if not total > 0:
        raise ArgumentValueError(
            f"the sum of the used pixels is {total:.6g}: the center needs positive intensities"
        )
    ny, nx = values.shape
    cy = float(values.sum(axis=1) @ np.arange(ny)) / total
    return cy, float(values.sum(axis=0) @ np.arange(nx)) / total
