"""Describe axes: name, positions and unit of each, and the unit of the values between them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from udfdask.base.types import AnyArray
from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.geometry.units import PIXELS


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One axis of an array: a name, and either labels, a linear scale or a list of values.

    Raises
    ------
    ArgumentTypeError
        If the name or the unit is not a text, or the scale or the offset is not a number.
    ArgumentValueError
        If the scale or the offset is not finite, or the scale is 0.

    Examples
    --------
    >>> from udfdask import Axis
    >>> Axis(name="x", unit="nm", scale=0.5, offset=10.0).to_pixels(12.0)
    4.0
    """

    name: str
    """Name of the axis, as xarray's dim."""
    labels: tuple[str, ...] | None = None
    """One label per position, or None."""
    unit: str | None = None
    """Unit of `scale` and `offset`, or None for pixels."""
    scale: float = 1.0
    """Distance between neighboring positions, in `unit`."""
    offset: float = 0.0
    """Value of position 0, in `unit`."""
    values: tuple[float, ...] | None = None
    """Value of each position in `unit`, if they are not evenly spaced; else None."""

    def __post_init__(self) -> None:
        """Raise unless the name and the unit are texts, and the scale and the offset numbers."""
        if not isinstance(self.name, str):
            raise ArgumentTypeError(
                f"the name of an Axis must be a text, such as name='y', not {self.name!r}"
            )
        if not (self.unit is None or isinstance(self.unit, str)):
            raise ArgumentTypeError(
                f"the unit of the axis {self.name!r} must be a text, such as unit='nm', not "
                f"{self.unit!r}"
            )
        for key, value in (("scale", self.scale), ("offset", self.offset)):
            if isinstance(value, bool) or not isinstance(value, (int, float, np.number)):
                raise ArgumentTypeError(
                    f"the {key} of the axis {self.name!r} must be a number, such as {key}=0.4, "
                    f"not {value!r} of type {type(value).__name__}"
                )
        if not (math.isfinite(self.scale) and math.isfinite(self.offset) and self.scale):
            raise ArgumentValueError(
                f"the axis {self.name!r} has scale={self.scale!r} and offset={self.offset!r}: both "
                "must be finite, and the scale a finite number other than 0"
            )

    @property
    def is_calibrated(self) -> bool:
        """Whether positions have values in a unit, and are not just numbered."""
        return self.unit is not None and self.unit not in PIXELS

    def positions(self, n: int) -> AnyArray:
        """Return the values of the first `n` positions.

        Parameters
        ----------
        n : int
            Number of positions.

        Returns
        -------
        numpy.ndarray, shape (n,), float64
            Values in `unit`, or pixel numbers.

        Examples
        --------
        >>> from udfdask import Axis
        >>> Axis(name="x", unit="nm", scale=0.5, offset=10.0).positions(3)
        array([10. , 10.5, 11. ])
        """
        if self.values is not None:
            return np.array(self.values[:n], dtype=np.float64)
        return self.offset + self.scale * np.arange(n)

    def to_pixels(self, value: float) -> float:
        """Return the (fractional) pixel position of a value.

        Parameters
        ----------
        value : float
            Value in `unit`.

        Returns
        -------
        float
            Position in pixels, not rounded; 0.0 for `offset`.

        Raises
        ------
        ValueError
            If the positions are not evenly spaced.

        Examples
        --------
        >>> from udfdask import Axis
        >>> Axis(name="x", unit="nm", scale=0.5).to_pixels(1.25)
        2.5
        """
        if self.values is not None:
            raise ValueError(f"the positions of the axis {self.name!r} are not evenly spaced")
        return (value - self.offset) / self.scale

    def sliced(self, part: slice, n: int) -> Axis:
        """Return the axis of a part of the positions.

        Parameters
        ----------
        part : slice
            The part, as in ``array[part]``; with a negative step, positions are reversed.
        n : int
            Number of positions of this axis.

        Returns
        -------
        Axis
            Axis of the part, whose positions have the values that they had.

        Raises
        ------
        ArgumentTypeError
            If `part` is not a slice; also a TypeError.

        Examples
        --------
        >>> from udfdask import Axis
        >>> Axis(name="x", unit="nm", scale=0.5).sliced(slice(2, 8, 3), 10)
        Axis(name='x', labels=None, unit='nm', scale=1.5, offset=1.0, values=None)
        """
        if not isinstance(part, slice):
            raise ArgumentTypeError(f"part must be a slice, not {part!r}")
        start, _, step = part.indices(n)
        return replace(
            self,
            labels=None if self.labels is None else self.labels[part],
            values=None if self.values is None else self.values[part],
            scale=self.scale if self.values is not None else self.scale * step,
            offset=self.offset if self.values is not None else self.offset + self.scale * start,
        )


def default_axis_names(ndim: int, sig_dims: int) -> tuple[str, ...]:
    """Return a name for each of `ndim` axes, of which the last `sig_dims` are signal axes."""

    def names(count: int, prefix: str, family: str) -> tuple[str, ...]:
        if count <= 2:
            return tuple(f"{prefix}{letter}" for letter in "yx"[2 - count :])
        return tuple(f"{family}_{index}" for index in range(count))

    return names(ndim - sig_dims, "", "nav") + names(sig_dims, "sig_", "sig")


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """The axes of a data set, the unit of its values, and the voltage of the microscope.

    Examples
    --------
    >>> import dask.array as da, udfdask as ud
    >>> axes = [ud.Axis(name="y", unit="nm"), ud.Axis(name="E", unit="eV")]
    >>> x = da.ones((3, 8))
    >>> how = {"axes": axes, "unit": "counts", "voltage": "300 kV"}
    >>> result = ud.run_udf(x, ud.udfs.SumUDF(), sig_dims=1, **how)
    >>> result.calibration.unit, result.calibration.axes[1].unit, result.calibration.voltage
    ('counts', 'eV', 300000.0)
    """

    axes: tuple[Axis, ...]
    """One axis for each dimension, (*nav, *sig)."""
    unit: str | None = None
    """Unit of the values, such as "counts"; None if it is not known."""
    voltage: float | None = None
    """Acceleration voltage of the electrons, in volts; None if it is not known."""


def in_pixels(ndim: int, sig_dims: int) -> Calibration:
    """Return the calibration of data of which nothing is known: pixel numbers."""
    return Calibration(axes=tuple(Axis(name=n) for n in default_axis_names(ndim, sig_dims)))


def shared_unit(axes: Sequence[Axis]) -> str | None:
    """Return the one unit of evenly spaced axes; None if vectors can only be in pixels."""
    fit = all(axis.is_calibrated and axis.values is None for axis in axes)
    units = {axis.unit for axis in axes}
    return units.pop() if fit and len(units) == 1 else None


def steps(axes: Sequence[Axis]) -> tuple[float, ...]:
    """Return the distance between positions along each axis in their shared unit; else 1."""
    if shared_unit(axes) is None:
        return (1.0,) * len(axes)
    return tuple(axis.scale for axis in axes)


def pixel_size(axes: Sequence[Axis], *, is_stretched: bool) -> tuple[float, str]:
    """Return the size of a pixel and its unit, for radii; (1, "px") if these have no unit.

    If pixels are not square, it is the geometric mean of their sizes, as the radius of an ellipse
    is that of its half axes. A ring that is round in pixels then has no radius in a unit.
    """
    unit, sizes = shared_unit(axes), [abs(step) for step in steps(axes)]
    if unit is None or len(sizes) != 2:
        return 1.0, "px"
    if math.isclose(*sizes, rel_tol=1e-6):
        return sizes[1], unit
    return (math.sqrt(sizes[0] * sizes[1]), unit) if is_stretched else (1.0, "px")


def axis_of_values(name: str, values: Any, unit: Any) -> Axis:
    """Return the axis of a dimension with these coordinate values.

    It has a scale and an offset if they are evenly spaced, else their list if they only rise or
    only fall. Otherwise, positions are numbered. A unit that is not text is ignored.
    """
    unit = unit if isinstance(unit, str) and unit else None
    found = np.asarray(values)
    if found.dtype.kind not in "iuf" or found.ndim != 1 or not found.size:
        return Axis(name=name)
    with np.errstate(all="ignore"):  # damaged values can be anything, such as 1e308 and NaN
        positions = found.astype(np.float64)
        step = float(positions[-1] - positions[0]) / max(1, positions.size - 1)
        even = positions[0] + step * np.arange(positions.size)
        fits = np.allclose(positions, even, rtol=0, atol=1e-3 * abs(step))
        differences = np.diff(positions)
        sorted_ = (differences > 0).all() or (differences < 0).all()
    if not np.isfinite(positions).all() or not np.isfinite(step) or not sorted_:
        return Axis(name=name)
    if fits and found.size > 1:  # one position says nothing about distances
        step = _shortest_step(positions, step)
        return Axis(name=name, unit=unit, scale=step, offset=float(positions[0]))
    return Axis(name=name, unit=unit, values=tuple(positions.tolist()))


def _shortest_step(positions: AnyArray, step: float) -> float:
    """Return the step of fewest digits close to `step` that gives exactly these positions.

    One that is calculated from rounded positions may differ in the last digits, so that a radius of
    "6 mrad" could miss a pixel that it reaches.
    """
    numbers = np.arange(positions.size)
    rounded = (float(f"{step:.{digits}g}") for digits in range(1, 16))
    near = (step + ulps * float(np.spacing(step)) for ulps in (0, 1, -1, 2, -2))
    for candidate in (*rounded, *near):
        if np.array_equal(positions[0] + candidate * numbers, positions):
            return candidate
    return step


def with_different_names(axes: Sequence[Axis | None], sig_dims: int) -> tuple[Axis, ...]:
    """Return axes with different names, made of what is known about each dimension.

    If a detector has the names of the scan, all its names get the prefix ``sig_``.
    """
    nav = len(axes) - sig_dims
    defaults = default_axis_names(len(axes), sig_dims)
    names = [
        (axis.name if axis else "") or default for axis, default in zip(axes, defaults, strict=True)
    ]
    if set(names[:nav]) & set(names[nav:]):
        names[nav:] = [f"sig_{name.removeprefix('sig_')}" for name in names[nav:]]
    named: dict[str, Axis] = {}
    for axis, given in zip(axes, names, strict=True):
        name = given
        while name in named:
            name += "_"
        named[name] = replace(axis, name=name) if axis else Axis(name=name)
    return tuple(named.values())
