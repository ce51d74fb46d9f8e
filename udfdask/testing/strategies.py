"""Provide hypothesis strategies for shapes, arrays, chunkings, regions and datasets."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import dask.array as da
import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from udfdask.base.types import AnyArray
from udfdask.geometry.shapes import Shape

DTYPES = (
    *("uint8", "uint16", "int16", "int32", "int64", "float32", "float64", "bool", "complex64"),
    *(">u2", ">i4", ">f4", ">f8", ">c8"),
)
"""Dtypes of detector data and of results, in both byte orders."""

__all__ = ["Dataset", "arrays", "chunkings", "datasets", "rois", "shapes"]


class Dataset(NamedTuple):
    """Input for `run_udf`, made by `datasets`.

    Examples
    --------
    >>> import dask.array as da
    >>> from udfdask.testing.strategies import Dataset
    >>> Dataset(array=da.ones((2, 3, 4)), sig_dims=1, roi=None).array.shape
    (2, 3, 4)
    """

    array: da.Array
    """The chunked data, shape (*nav, *sig)."""
    sig_dims: int
    """Number of signal axes."""
    roi: AnyArray | None
    """Region of interest, shape `nav`; None for all frames."""


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
    """Return a strategy for shapes of datasets.

    Parameters
    ----------
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
    """Return a strategy for ways to chunk an array, also with ragged chunks.

    Parameters
    ----------
    shape : sequence of int
        Extent of each axis.

    Returns
    -------
    SearchStrategy of tuple of tuple of int
        Chunk sizes along each axis, as in dask.

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


@st.composite
def arrays(
    draw: st.DrawFn, shape: Sequence[int] | None = None, *, dtype: Any = None, largest: int = 100
) -> AnyArray:
    """Return a strategy for data: small numbers, also zeros and negative numbers.

    Floats are multiples of 1/8, because their sums are exact and can be compared exactly.

    Parameters
    ----------
    shape : sequence of int, optional
        Extent of each axis; by default from `shapes`.
    dtype : dtype-like, optional
        Dtype; by default one of integers, floats, complex numbers and booleans, in both byte
        orders.
    largest : int
        Largest absolute value.

    Returns
    -------
    SearchStrategy of numpy.ndarray
        Arrays.

    Examples
    --------
    >>> from hypothesis import find
    >>> from udfdask.testing.strategies import arrays
    >>> find(arrays((2, 2), dtype=">i2"), lambda data: True)
    array([[0, 0],
           [0, 0]], dtype='>i2')
    """
    sides = tuple(draw(shapes()) if shape is None else shape)
    dt = np.dtype(draw(st.sampled_from(DTYPES)) if dtype is None else dtype)
    if dt.kind in "iu":
        largest = min(largest, int(np.iinfo(dt).max))
    least = 0 if dt.kind in "bu" else -largest
    numbers = hnp.arrays(np.int64, sides, elements=st.integers(least, largest))
    if dt.kind == "b":
        return draw(numbers) > largest // 2
    if dt.kind == "f":
        return (draw(numbers) / 8).astype(dt)
    if dt.kind == "c":
        return (draw(numbers) / 8 + 1j * draw(numbers) / 8).astype(dt)
    return draw(numbers).astype(dt)


@st.composite
def datasets(draw: st.DrawFn, *, min_nav: int = 1, dtype: Any = None, max_side: int = 4) -> Dataset:
    """Return a strategy for datasets: chunked arrays with a region of interest.

    Parameters
    ----------
    min_nav : int
        Smallest number of navigation axes.
    dtype : dtype-like, optional
        Dtype of the data; by default as in `arrays`.
    max_side : int
        Largest extent of an axis, in frames or pixels.

    Returns
    -------
    SearchStrategy of Dataset
        Named tuples `(array, sig_dims, roi)`.

    Examples
    --------
    >>> import udfdask as ud
    >>> from hypothesis import given
    >>> from udfdask.testing import assert_eq, run_reference
    >>> from udfdask.testing.strategies import datasets
    >>> from udfdask.udfs import SumSigUDF
    >>> @given(data=datasets(dtype="int16"))
    ... def test_sums(data):
    ...     how = {"sig_dims": data.sig_dims, "roi": data.roi}
    ...     result = ud.run_udf(data.array, SumSigUDF(), **how)
    ...     assert_eq(result, run_reference(data.array, SumSigUDF(), **how))
    """
    shape = draw(shapes(min_nav=min_nav, max_side=max_side))
    data = draw(arrays(shape, dtype=dtype))
    array = da.from_array(data, chunks=draw(chunkings(shape)))
    return Dataset(array=array, sig_dims=shape.sig_dims, roi=draw(rois(tuple(shape.nav))))
