"""Hypothesis strategies: shapes, chunkings and regions of interest. Needs hypothesis."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from udfdask.shapes import Shape
from udfdask.types import AnyArray


@st.composite
def shapes(
    draw: st.DrawFn,
    *,
    min_nav: int = 0,
    max_nav: int = 3,
    min_sig: int = 1,
    max_sig: int = 3,
    max_side: int = 5,
) -> Shape:
    """Return a strategy for shapes of data sets.

    Parameters
    ----------
    draw : callable
        Given by hypothesis.
    min_nav, max_nav : int
        Smallest and largest number of navigation axes.
    min_sig, max_sig : int
        Smallest and largest number of signal axes.
    max_side : int
        Largest extent of an axis, in frames or pixels.

    Returns
    -------
    SearchStrategy of Shape
        Shapes without axes of extent 0.

    Examples
    --------
    >>> from hypothesis import find
    >>> from udfdask.testing.strategies import shapes
    >>> find(shapes(min_nav=2, min_sig=2), lambda shape: True)
    (1, 1, 1, 1)
    """
    n_nav = draw(st.integers(min_nav, max_nav))
    n_sig = draw(st.integers(min_sig, max_sig))
    sides = draw(st.lists(st.integers(1, max_side), min_size=n_nav + n_sig, max_size=n_nav + n_sig))
    return Shape(sides, sig_dims=n_sig)


@st.composite
def chunkings(draw: st.DrawFn, shape: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """Return a strategy for ways to chunk an array, ragged ones among them.

    Parameters
    ----------
    draw : callable
        Given by hypothesis.
    shape : sequence of int
        Extent of each axis.

    Returns
    -------
    SearchStrategy of tuple of tuple of int
        Chunk sizes along each axis, as dask has them.

    Examples
    --------
    >>> from hypothesis import find
    >>> from udfdask.testing.strategies import chunkings
    >>> find(chunkings((3, 2)), lambda chunks: len(chunks[0]) == 2)
    ((1, 2), (2,))
    """
    chunks = []
    for side in shape:
        cuts = sorted(draw(st.sets(st.integers(1, side - 1)))) if side > 1 else []
        ends = [0, *cuts, side]
        chunks.append(tuple(b - a for a, b in itertools.pairwise(ends)))
    return tuple(chunks)


def rois(nav: Sequence[int]) -> st.SearchStrategy[AnyArray | None]:
    """Return a strategy for regions of interest: none, empty, full, one frame, any mask.

    Parameters
    ----------
    nav : sequence of int
        Navigation shape.

    Returns
    -------
    SearchStrategy of numpy.ndarray of bool or None
        Masks of shape `nav`, or None.

    Examples
    --------
    >>> from hypothesis import find
    >>> from udfdask.testing.strategies import rois
    >>> find(rois((2, 2)), lambda roi: roi is not None and roi.sum() == 1).shape
    (2, 2)
    """
    size = int(np.prod(nav))

    def mask(flags: Any) -> AnyArray:
        return np.array(flags, dtype=bool).reshape(tuple(nav))

    one = st.integers(0, max(size - 1, 0)).map(lambda k: mask(np.arange(size) == k))
    some = st.lists(st.booleans(), min_size=size, max_size=size).map(mask)
    return st.one_of(
        st.none(), some, one, st.just(mask([False] * size)), st.just(mask([True] * size))
    )
