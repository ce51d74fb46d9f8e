"""Templates of diffraction disks, and their shifted copies for the correlation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from udfdask.arrays.geometry.units import Quantity, as_quantity
from udfdask.errors import ArgumentValueError
from udfdask.masks import checks
from udfdask.masks.background import background_subtraction
from udfdask.masks.disks import circular
from udfdask.types import AnyArray


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskTemplate:
    """Template of a diffraction disk: a disk with a soft edge, with or without a negative ring.

    With a ring, the sum of the template is 0, and its product with a flat background is 0. Radii
    can have the unit of the signal axes, such as ``"2 mrad"`` or ``(2, "mrad")``: a run of a
    `CorrelationUDF` converts them.

    Raises
    ------
    ArgumentTypeError
        If a radius is not a number.
    ArgumentValueError
        If `radius` is not positive and finite, or `radius_outer` is not larger. If one of them has
        a unit, `run_udf` raises this error.

    See Also
    --------
    udfdask.udfs.CorrelationUDF : Finds the template in frames.

    Examples
    --------
    >>> from udfdask.masks import DiskTemplate
    >>> print(DiskTemplate(radius=1).array().round(1))
    [[0.1 0.5 0.1]
     [0.5 1.  0.5]
     [0.1 0.5 0.1]]
    >>> DiskTemplate(radius=4, radius_outer=6).array().shape
    (13, 13)
    """

    radius: Any
    """Radius of the disk, in pixels, or with a unit."""
    radius_outer: Any = None
    """Outer radius of the negative ring around the disk, in pixels or with a unit; None for no
    ring."""

    def __post_init__(self) -> None:
        radius, outer = self._read("radius"), self._read("radius_outer")
        if not isinstance(radius, Quantity):
            radius = checks.radius("radius", radius, positive=True)
        if outer is not None and not isinstance(outer, Quantity):
            checks.radius("radius_outer", outer)
        if self.has_units:
            return
        if outer is not None and checks.radius("radius_outer", outer) <= radius:
            raise ArgumentValueError(
                f"radius_outer must be larger than radius, but {outer!r} <= {self.radius!r}: it is "
                "the outer radius of the ring around the disk"
            )

    def _read(self, name: str) -> Any:
        """Keep a radius with a unit as a `Quantity`, and return it."""
        value = as_quantity(name, getattr(self, name))
        object.__setattr__(self, name, value)
        return value

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
        >>> template = DiskTemplate(radius=4, radius_outer=6).array()
        >>> print(template.max(), abs(template.sum().round(9)))
        1.0 0.0
        """
        if self.has_units:
            raise ArgumentValueError(
                f"{self} has a radius with a unit, but the array needs pixels: give numbers of "
                "pixels, or pass the template to a CorrelationUDF, which knows the axes of the data"
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
