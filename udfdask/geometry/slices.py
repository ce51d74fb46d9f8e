"""Rectangular parts of arrays with navigation and signal axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from udfdask.errors import UDFError
from udfdask.geometry.shapes import Shape


class Slice:
    """A rectangular part of an array of shape `(*nav, *sig)`.

    In `UDF.meta.slice`, the navigation part is a single axis: flattened, with the ROI applied. If
    the rows of the part are not contiguous in that order (for example because the second of two
    navigation axes is chunked), `rows` holds their indices. Then there is no `origin`, and
    ``get(array)`` returns a read-only copy.

    Parameters
    ----------
    origin : sequence of int
        Index of the first element along each axis.
    shape : Shape
        Extent along each axis, in elements.
    rows : numpy.ndarray, shape (shape.nav[0],), optional
        Navigation indices, if they are not `origin[0], origin[0] + 1, ...`.

    Raises
    ------
    ValueError
        If `origin` and `shape` differ in length.

    Examples
    --------
    >>> from udfdask import Shape, Slice
    >>> s = Slice(origin=(3, 0, 8), shape=Shape((2, 4, 8), sig_dims=2))
    >>> s.get()
    (slice(3, 5, None), slice(0, 4, None), slice(8, 16, None))
    >>> s.get(nav_only=True), s.sig.shape
    ((slice(3, 5, None),), (4, 8))
    """

    __slots__ = ("_origin", "rows", "shape")

    def __init__(
        self, origin: Sequence[int], shape: Shape, rows: np.ndarray[Any, Any] | None = None
    ) -> None:
        if len(origin) != len(shape):
            raise ValueError(f"origin {tuple(origin)} and shape {shape} differ in length")
        self._origin = tuple(int(o) for o in origin)
        self.shape = shape
        """Extent along each axis, a `Shape`."""
        self.rows = rows
        """Navigation indices if they are not contiguous, otherwise None."""

    @property
    def origin(self) -> tuple[int, ...]:
        """Index of the first element along each axis.

        Raises
        ------
        UDFError
            If the rows are not contiguous in flattened navigation order.
        """
        if self.rows is not None:
            raise UDFError(
                "this slice has no origin: its rows are not contiguous in flattened navigation "
                "order because an inner navigation axis is chunked. Use meta.coordinates or "
                "slice.get(), or set contiguous_nav = True on the UDF"
            )
        return self._origin

    def _key(self) -> tuple[Any, ...]:
        rows = None if self.rows is None else self.rows.tobytes()
        return (self._origin if rows is None else self._origin[1:], tuple(self.shape), rows)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Slice) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        where = f"origin={self._origin}" if self.rows is None else f"rows={self.rows}"
        return f"Slice({where}, shape={self.shape})"

    def __reduce__(self) -> tuple[Any, ...]:
        return (Slice, (self._origin, self.shape, self.rows))

    @property
    def nav(self) -> Slice:
        """The navigation part."""
        n = len(self.shape.nav)
        return Slice(self._origin[:n], self.shape.nav, self.rows)

    @property
    def sig(self) -> Slice:
        """The signal part."""
        n = len(self.shape.nav)
        return Slice(self._origin[n:], self.shape.sig)

    def get(
        self,
        array: Any = None,
        sig_only: bool = False,
        nav_only: bool = False,
    ) -> Any:
        """Return an index tuple, or the part of `array` that this slice describes.

        Parameters
        ----------
        array : array-like, optional
            Array to cut, with the axes of this slice, or of its signal or navigation part.
        sig_only, nav_only : bool
            Use only the signal part, or only the navigation part.

        Returns
        -------
        tuple or array
            An index if there is no `array`, otherwise a view of `array`. If the rows are not
            contiguous, it is a read-only copy: writing to it raises an error instead of being lost.

        Examples
        --------
        >>> import numpy as np
        >>> from udfdask import Shape, Slice
        >>> part = Slice((1, 0, 2), Shape((2, 4, 2), sig_dims=2))
        >>> part.get()
        (slice(1, 3, None), slice(0, 4, None), slice(2, 4, None))
        >>> part.get(np.zeros((5, 4, 4))).shape, part.get(np.zeros((4, 4)), sig_only=True).shape
        ((2, 4, 2), (4, 2))
        """
        part = self.sig if sig_only else self.nav if nav_only else self
        index: tuple[Any, ...] = tuple(
            slice(o, o + n) for o, n in zip(part._origin, part.shape, strict=True)
        )
        if part.rows is not None:
            index = (part.rows, *index[1:])
        if array is None:
            return index
        values = array[index]
        if part.rows is not None and isinstance(values, np.ndarray):
            values.flags.writeable = False
        return values

    def shift(self, other: Slice) -> Slice:
        """Return this slice with its origin relative to the origin of `other`.

        Parameters
        ----------
        other : Slice
            Slice with the same number of axes.

        Returns
        -------
        Slice
            A slice of the same shape; its origin may be negative.

        Raises
        ------
        UDFError, ValueError
            If one of the slices has no `origin`, or the numbers of axes differ.

        Examples
        --------
        >>> from udfdask import Shape, Slice
        >>> tile = Slice(origin=(3, 0, 8), shape=Shape((2, 4, 8), sig_dims=2))
        >>> tile.shift(Slice(origin=(1, 0, 8), shape=Shape((6, 4, 8), sig_dims=2)))
        Slice(origin=(2, 0, 0), shape=(2, 4, 8))
        """
        return self.shift_by([-o for o in other.origin])

    def shift_by(self, offset: Sequence[int]) -> Slice:
        """Return this slice moved by `offset`.

        Parameters
        ----------
        offset : sequence of int
            Number of elements to add to the origin along each axis.

        Returns
        -------
        Slice
            A slice of the same shape; its origin may be negative.

        Raises
        ------
        UDFError, ValueError
            If this slice has no `origin`, or `offset` does not have one int per axis.

        Examples
        --------
        >>> from udfdask import Shape, Slice
        >>> tile = Slice(origin=(3, 0, 8), shape=Shape((2, 4, 8), sig_dims=2))
        >>> tile.shift_by((1, 0, -8))
        Slice(origin=(4, 0, 0), shape=(2, 4, 8))
        """
        origin = tuple(o + d for o, d in zip(self.origin, offset, strict=True))
        return Slice(origin, self.shape)

    def intersection_with(self, other: Slice) -> Slice:
        """Return the common part of two slices.

        Parameters
        ----------
        other : Slice
            Slice with the same number of axes.

        Returns
        -------
        Slice
            The common part, with the signal axes of this slice; null if there is none.

        Raises
        ------
        UDFError, ValueError
            If one of the slices has no `origin`, or the numbers of axes differ.

        Examples
        --------
        >>> from udfdask import Shape, Slice
        >>> tile = Slice(origin=(3, 0, 8), shape=Shape((2, 4, 8), sig_dims=2))
        >>> tile.intersection_with(Slice(origin=(4, 2, 8), shape=Shape((4, 4, 4), sig_dims=2)))
        Slice(origin=(4, 2, 8), shape=(1, 2, 4))
        """
        pairs = list(zip(self.origin, self.shape, other.origin, other.shape, strict=True))
        start = [max(o1, o2) for o1, _, o2, _ in pairs]
        stop = [min(o1 + n1, o2 + n2) for o1, n1, o2, n2 in pairs]
        extent = [max(0, b - a) for a, b in zip(start, stop, strict=True)]
        return Slice(start, Shape(extent, sig_dims=self.shape.sig_dims))

    def is_null(self) -> bool:
        """Return whether the slice holds no element.

        Returns
        -------
        bool
            True if the extent along any axis is 0.

        Examples
        --------
        >>> from udfdask import Shape, Slice
        >>> Slice(origin=(3, 0, 8), shape=Shape((0, 4, 8), sig_dims=2)).is_null()
        True
        """
        return self.shape.size == 0

    def discard_nav(self) -> Slice:
        """Return this slice with navigation origin and extent set to zero.

        Returns
        -------
        Slice
            Equal, with the same hash, for all slices with the same signal part: a key for it.

        Examples
        --------
        >>> from udfdask import Shape, Slice
        >>> Slice(origin=(3, 0, 8), shape=Shape((2, 4, 8), sig_dims=2)).discard_nav()
        Slice(origin=(0, 0, 8), shape=(0, 4, 8))
        """
        n = len(self.shape.nav)
        return Slice(
            (0,) * n + self._origin[n:],
            Shape((0,) * n + tuple(self.shape.sig), sig_dims=self.shape.sig_dims),
        )
