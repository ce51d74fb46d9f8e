"""Describe an axis: its name, its positions and its unit."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One axis of an array: a name, and either labels or a linear scale.

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

        Examples
        --------
        >>> from udfdask import Axis
        >>> Axis(name="x", unit="nm", scale=0.5).to_pixels(1.25)
        2.5
        """
        return (value - self.offset) / self.scale


def default_axis_names(ndim: int, sig_dims: int) -> tuple[str, ...]:
    """Return a name for each of `ndim` axes, of which the last `sig_dims` are signal axes."""

    def names(count: int, prefix: str, family: str) -> tuple[str, ...]:
        if count <= 2:
            return tuple(f"{prefix}{letter}" for letter in "yx"[2 - count :])
        return tuple(f"{family}_{index}" for index in range(count))

    return names(ndim - sig_dims, "", "nav") + names(sig_dims, "sig_", "sig")
