"""Shapes with a navigation part and a signal part."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cached_property
from typing import Any, Self, SupportsIndex, overload


class Shape(tuple[int, ...]):
    """A shape `(*nav, *sig)` that knows how many of its trailing axes are signal axes.

    It is a tuple of ints and works wherever NumPy takes one.

    Parameters
    ----------
    shape : iterable of int
        Size of each axis, navigation axes first.
    sig_dims : int
        Number of trailing signal axes.

    Raises
    ------
    ValueError
        If `sig_dims` is negative or larger than the number of axes.

    Examples
    --------
    >>> from udfdask import Shape
    >>> s = Shape((4, 5, 16, 16), sig_dims=2)
    >>> s.nav, s.sig, s.nav.size
    ((4, 5), (16, 16), 20)
    >>> s.flatten_nav()
    (20, 16, 16)
    """

    sig_dims: int
    """Number of signal axes."""

    def __new__(cls, shape: Iterable[SupportsIndex], sig_dims: int) -> Self:
        """Make a shape whose last `sig_dims` axes are signal axes."""
        self = super().__new__(cls, (int(n) for n in shape))
        if not 0 <= sig_dims <= len(self):
            raise ValueError(f"sig_dims must be between 0 and {len(self)}, not {sig_dims}")
        self.sig_dims = sig_dims
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return (Shape, (tuple(self), self.sig_dims))

    @cached_property
    def nav(self) -> Shape:
        """The navigation part, a `Shape` without signal axes."""
        return Shape(self[: len(self) - self.sig_dims], sig_dims=0)

    @cached_property
    def sig(self) -> Shape:
        """The signal part, a `Shape` of signal axes only."""
        return Shape(self[len(self) - self.sig_dims :], sig_dims=self.sig_dims)

    @property
    def dims(self) -> int:
        """Number of axes."""
        return len(self)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self)

    def flatten_nav(self) -> Shape:
        """Flatten all navigation axes into one.

        Returns
        -------
        Shape
            ``(nav.size, *sig)``, with the same signal axes.

        Examples
        --------
        >>> from udfdask import Shape
        >>> Shape((4, 5, 16, 16), sig_dims=2).flatten_nav()
        (20, 16, 16)
        """
        return Shape((self.nav.size, *self.sig), sig_dims=self.sig_dims)

    def flatten_sig(self) -> Shape:
        """Flatten all signal axes into one.

        Returns
        -------
        Shape
            ``(*nav, sig.size)``, with one signal axis.

        Examples
        --------
        >>> from udfdask import Shape
        >>> Shape((4, 5, 16, 16), sig_dims=2).flatten_sig()
        (4, 5, 256)
        """
        return Shape((*self.nav, self.sig.size), sig_dims=1)

    def to_tuple(self) -> tuple[int, ...]:
        """Return a plain tuple.

        Returns
        -------
        tuple of int
            Size of each axis, navigation axes first.

        Examples
        --------
        >>> from udfdask import Shape
        >>> type(Shape((4, 16, 16), sig_dims=2).to_tuple())
        <class 'tuple'>
        """
        return tuple(self)

    @overload
    def __add__(self, other: tuple[int, ...]) -> tuple[int, ...]: ...
    @overload
    def __add__(self, other: tuple[Any, ...]) -> tuple[Any, ...]: ...
    def __add__(self, other: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(self) + tuple(other)


def in_words(shape: Shape) -> str:
    """Return scan and frames in words: "4 x 6 scan positions, frames of 16 x 16 pixels"."""
    sig = " x ".join(map(str, shape.sig))
    frames = f"spectra of {sig} channels" if len(shape.sig) == 1 else f"frames of {sig} pixels"
    if not shape.nav:
        return f"1 position, {frames}"
    return f"{' x '.join(map(str, shape.nav))} scan positions, {frames}"
