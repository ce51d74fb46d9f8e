"""Templates of diffraction disks, and masks without a background."""

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
