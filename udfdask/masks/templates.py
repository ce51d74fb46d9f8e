"""Templates of diffraction disks, masks without a background, stacks of shifted copies."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from udfdask.base.types import AnyArray
from udfdask.errors import ArgumentValueError
from udfdask.geometry.units import Quantity, as_quantity
from udfdask.masks import checks
from udfdask.masks.disks import circular, ring


def sparse_template_multi_stack(
    mask_index: Any, offsetX: Any, offsetY: Any, template: Any, imageSizeX: int, imageSizeY: int
) -> Any:
    """Return a sparse stack of masks with copies of a template at many positions.

    Parameters
    ----------
    mask_index : sequence of int, length n
        Number of the mask that gets each copy. Several copies can share a mask; where they
        overlap, their values are added (combined with `or` for a boolean template).
    offsetX, offsetY : sequence of float, length n
        Position in the frame of the first pixel of each copy, in pixels, rounded.
    template : numpy.ndarray, shape (height, width)
        The template.
    imageSizeX, imageSizeY : int
        Size of the frame, in pixels; parts outside the frame are cut off.

    Returns
    -------
    sparse.COO, shape (max(mask_index) + 1, imageSizeY, imageSizeX), dtype of `template`
        The masks.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If a number is invalid, the sequences are empty or differ in length, or `template` does not
        have two axes.
    ImportError
        If the package `sparse` is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> from udfdask.masks import sparse_template_multi_stack
    >>> stack = sparse_template_multi_stack(
    ...     mask_index=[0, 1], offsetX=[0, 3], offsetY=[1, 0],
    ...     template=np.ones((2, 2), dtype="uint8"), imageSizeX=4, imageSizeY=3,
    ... )
    >>> stack.shape, stack.nnz
    ((2, 3, 4), 6)
    """
    sparse = checks.needs_sparse("sparse_template_multi_stack")
    nx, ny = checks.size("imageSizeX", imageSizeX), checks.size("imageSizeY", imageSizeY)
    stamp = np.asarray(template)
    height, width = stamp.shape
    masks = _positions("mask_index", mask_index)
    left, top = _positions("offsetX", offsetX), _positions("offsetY", offsetY)
    if not len(masks) == len(left) == len(top) or not len(masks) or masks.min() < 0:
        raise ArgumentValueError(
            "mask_index, offsetX and offsetY must have the same length, at least 1, and mask_index "
            "no negative numbers"
        )
    k, y, x = (n[:, np.newaxis, np.newaxis] for n in (masks, top, left))
    y, x = y + np.arange(height)[:, np.newaxis], x + np.arange(width)
    k, y, x, values = np.broadcast_arrays(k, y, x, stamp)
    inside = (y >= 0) & (y < ny) & (x >= 0) & (x < nx)
    return sparse.COO(
        coords=np.stack([k[inside], y[inside], x[inside]]),
        data=values[inside],
        shape=(int(masks.max()) + 1, ny, nx),
    )


def sparse_circular_multi_stack(
    mask_index: Any, centerX: Any, centerY: Any, imageSizeX: int, imageSizeY: int, radius: float
) -> Any:
    """Return a sparse stack of masks with disks at many positions.

    Parameters
    ----------
    mask_index, centerX, centerY : sequence, length n
        Number of the mask that gets each disk, and the centers, in pixels, rounded.
    imageSizeX, imageSizeY : int
        Size of the frame, in pixels; parts outside the frame are cut off.
    radius : float
        Radius of all disks, in pixels, 0 or more.

    Returns
    -------
    sparse.COO, shape (max(mask_index) + 1, imageSizeY, imageSizeX), bool
        The masks; each disk is made by `circular`.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If a number is invalid, or the sequences are empty or differ in length.
    ImportError
        If the package `sparse` is not installed.

    Examples
    --------
    >>> from udfdask.masks import sparse_circular_multi_stack
    >>> stack = sparse_circular_multi_stack(range(2), [3, 0], [2, 0], 8, 6, radius=1)
    >>> print(stack.shape, stack.sum(axis=(1, 2)).todense())
    (2, 6, 8) [5 3]
    """
    reach = math.ceil(checks.radius("radius", radius))
    extent = 2 * reach + 1
    return sparse_template_multi_stack(
        mask_index=mask_index,
        offsetX=_positions("centerX", centerX) - reach,
        offsetY=_positions("centerY", centerY) - reach,
        template=circular(reach, reach, extent, extent, radius),
        imageSizeX=imageSizeX,
        imageSizeY=imageSizeY,
    )


def _positions(name: str, values: Any) -> AnyArray:
    """Return a one-dimensional array of whole numbers, rounded to the nearest."""
    array: AnyArray = np.asarray(values).reshape(-1)
    if array.size and (array.dtype.kind not in "iuf" or not np.isfinite(array).all()):
        raise ArgumentValueError(f"{name} must contain finite numbers, not {values!r:.80}")
    rounded: AnyArray = np.rint(array).astype(np.int64)
    return rounded


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskTemplate:
    """Template of a diffraction disk: a disk with a soft edge, with or without a negative ring.

    With a ring, its product with a flat background is 0. Radii can have the unit of the signal
    axes, such as ``"2 mrad"`` or ``(2, "mrad")``: a run of a UDF with this template converts them.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If `radius` is not a positive number, or `radius_outer` is not larger. If one of them has a
        unit, `run_udf` raises this error.

    See Also
    --------
    udfdask.analyses.find_disks : Finds the template anywhere in frames.
    udfdask.udfs.CorrelationUDF : Finds the template near given positions.

    Examples
    --------
    >>> from udfdask.masks import DiskTemplate
    >>> print(DiskTemplate(radius=1).array().round(1))
    [[0.1 0.5 0.1]
     [0.5 1.  0.5]
     [0.1 0.5 0.1]]
    """

    radius: Any
    """Radius of the disk, in pixels, or with a unit."""
    radius_outer: Any = None
    """Outer radius of the negative ring around the disk, in pixels or with a unit; None for no
    ring."""

    def __post_init__(self) -> None:
        for name in ("radius", "radius_outer"):
            value = as_quantity(name, getattr(self, name))
            object.__setattr__(self, name, value)
            if value is not None and not isinstance(value, Quantity):
                checks.radius(name, value, positive=name == "radius")
        outer = self.radius_outer
        if not self.has_units and outer is not None and float(outer) <= float(self.radius):
            raise ArgumentValueError(
                f"radius_outer must be larger than radius, but {outer!r} <= {self.radius!r}"
            )

    @property
    def has_units(self) -> bool:
        """Whether a radius has a unit, so that the template needs the axes of the data."""
        return any(isinstance(r, Quantity) for r in (self.radius, self.radius_outer))

    def array(self) -> AnyArray:
        """Return the template as an array, with its center in the middle.

        Returns
        -------
        numpy.ndarray, shape (2 * n + 1, 2 * n + 1), float64
            The template in the smallest array that holds it: `circular` or
            `background_subtraction` with ``antialiased=True``.

        Raises
        ------
        ArgumentValueError
            If a radius has a unit.

        Examples
        --------
        >>> from udfdask.masks import DiskTemplate
        >>> DiskTemplate(radius=4, radius_outer=6).array().shape
        (13, 13)
        """
        if self.has_units:
            raise ArgumentValueError(
                f"{self} has a radius with a unit: only the run of a UDF knows the axes of the data"
            )
        outer = self.radius if self.radius_outer is None else self.radius_outer
        n = math.ceil(outer + 0.5) - 1  # soft edges end half a pixel outside
        size = 2 * n + 1
        if self.radius_outer is None:
            return circular(n, n, size, size, self.radius, antialiased=True)
        return background_subtraction(
            n, n, size, size, radius=outer, radius_inner=self.radius, antialiased=True
        )


def shifted_templates(template: AnyArray, steps: int) -> AnyArray:
    """Return copies of a template at all positions of a window with `steps` more pixels per side.

    The stack has the shape ((2 * steps + 1)**2, height + 2 * steps, width + 2 * steps) and the
    dtype of the template. Its masks are in C order of the shifts, starting at (-steps, -steps).
    """
    height, width = template.shape
    side = 2 * steps + 1
    window = (height + 2 * steps, width + 2 * steps)
    stack = np.zeros((side, side, *window), dtype=template.dtype)
    for y in range(side):
        for x in range(side):
            stack[y, x, y : y + height, x : x + width] = template
    return stack.reshape((side**2, *window))


def balance(template: Any) -> AnyArray:
    """Scale the negative part of a mask so that its product with a uniform background is 0.

    Parameters
    ----------
    template : array-like of real numbers
        Mask with positive and negative values; it is not changed.

    Returns
    -------
    numpy.ndarray, shape of `template`, its dtype if that is a float, else float64
        ``template`` where it is positive, elsewhere
        ``template * sum(positive part) / -sum(negative part)``.

    Raises
    ------
    ArgumentValueError
        If there is no positive or no negative value.

    Examples
    --------
    >>> from udfdask.masks import balance
    >>> print(balance([1, 2, 0, -1, -1]))
    [ 1.   2.   0.  -1.5 -1.5]
    """
    result = _as_float(template)
    above, below = result > 0, result < 0
    if not above.any() or not below.any():
        raise ArgumentValueError("a template to balance needs positive and negative values")
    result[below] *= -result[above].sum() / result[below].sum()
    return result


def background_subtraction(
    centerX: float,
    centerY: float,
    imageSizeX: int,
    imageSizeY: int,
    radius: float,
    radius_inner: float,
    antialiased: bool = False,
) -> AnyArray:
    """Return a mask with a disk of ones and a negative ring around it; its sum is 0.

    The mask is ``disk - ring * sum(disk) / sum(ring)``. The disk has the radius `radius_inner`,
    and the ring extends from there to `radius`.

    Parameters
    ----------
    centerX, centerY, imageSizeX, imageSizeY, radius, radius_inner, antialiased : float, int, bool
        As for `ring`.

    Returns
    -------
    numpy.ndarray, shape (imageSizeY, imageSizeX), float64
        The mask.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If an argument is not a number of pixels that it can be, or no pixel is in the ring.

    Examples
    --------
    >>> from udfdask.masks import background_subtraction
    >>> mask = background_subtraction(2, 0, 5, 1, radius=2, radius_inner=1)
    >>> print(mask[0])
    [-1.5  1.   1.   1.  -1.5]
    """
    r, ri = checks.radii(radius, radius_inner)
    disk = circular(centerX, centerY, imageSizeX, imageSizeY, ri, antialiased).astype(np.float64)
    around = ring(centerX, centerY, imageSizeX, imageSizeY, r, ri, antialiased)
    total = around.sum()
    if not total:
        raise ArgumentValueError(
            f"no pixel lies between radius_inner={radius_inner!r} and radius={radius!r}"
        )
    background: AnyArray = disk - around * (disk.sum() / total)
    return background


def radial_gradient_background_subtraction(
    r: Any, r0: float, r_outer: float, delta: float = 1
) -> AnyArray:
    """Return a radial gradient surrounded by a negative ring, as a function of distance.

    It is ``r / r0`` where ``r < r0 - delta/2``, from there ``(r0 - r) / (delta/2)`` to
    ``r < r0 + delta/2``, from there -1 to ``r <= r_outer``, and 0 elsewhere.

    Parameters
    ----------
    r : array-like of real numbers
        Distance of each pixel from the center, in pixels. An elliptical distance from `polar_map`
        gives an elliptical mask.
    r0 : float
        Radius of the gradient, in pixels, more than 0.
    r_outer : float
        Outer radius of the ring, in pixels.
    delta : float
        Width of the transition from 1 to -1, in pixels, 0 or more.

    Returns
    -------
    numpy.ndarray, shape of `r`, its dtype if that is a float, else float64
        The mask; `balance` makes its sum 0.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If an argument is not a number of pixels that it can be.

    Examples
    --------
    >>> from udfdask.masks import radial_gradient_background_subtraction
    >>> print(radial_gradient_background_subtraction([0, 2, 4, 5, 6, 7], r0=4, r_outer=6))
    [ 0.   0.5  0.  -1.  -1.   0. ]
    """
    inner = checks.radius("r0", r0, positive=True)
    outer = checks.radius("r_outer", r_outer)
    half = checks.radius("delta", delta) / 2
    d = _as_float(r)
    result = np.zeros_like(d)
    within = d < inner - half
    result[within] = d[within] / inner
    transition = (d >= inner - half) & (d < inner + half)
    result[transition] = (inner - d[transition]) / half if half else 0
    result[(d >= inner + half) & (d <= outer)] = -1
    return result


def _as_float(values: Any) -> AnyArray:
    """Return a copy of an array in its own float dtype, otherwise in float64."""
    array = np.asarray(values)
    return np.array(array, dtype=array.dtype if array.dtype.kind == "f" else np.float64)
