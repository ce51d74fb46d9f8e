"""Labeled data of any kind, and what the run without labels gives."""

from typing import Any, NamedTuple

import dask.array as da
import numpy as np
import pytest
from hypothesis import strategies as st

from udfdask.testing.strategies import chunkings, rois, shapes

xr = pytest.importorskip("xarray", reason="xarray is an extra")

NAMES = ("ky", "kx", "kz", "y", "x", "time")


class Case(NamedTuple):
    array: xr.DataArray
    nav: tuple[str, ...]
    sig: tuple[str, ...]
    roi: np.ndarray | None

    @property
    def ordered(self) -> da.Array:
        """The data as UDFs see them, shape (*nav, *sig)."""
        axes = [self.array.dims.index(dim) for dim in (*self.nav, *self.sig)]
        return self.array.data.transpose(axes)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Data with some coordinates along each dimension, over two of them, and over none."""
    shape = draw(shapes(min_nav=0, max_nav=2, max_sig=2, max_side=3))
    dims = draw(st.permutations(NAMES))[: len(shape)]
    nav, sig = tuple(dims[: shape.nav.dims]), tuple(dims[shape.nav.dims :])
    data = np.arange(np.prod(shape)).reshape(shape).astype("int16")
    chunked = da.from_array(data, chunks=draw(chunkings(shape)))
    array = xr.DataArray(chunked, dims=dims, attrs=draw(attributes()))
    for dim, n in zip(dims, shape, strict=True):
        for name, values in draw(coordinates(dim, n)).items():
            array = array.assign_coords({name: (dim, values, {"units": "nm", "of": dim})})
    if len(dims) > 1 and draw(st.booleans()):
        pair = draw(st.permutations(dims))[:2]
        sizes = [array.sizes[dim] for dim in pair]
        array = array.assign_coords(both=(pair, np.random.default_rng(1).random(sizes)))
    if draw(st.booleans()):
        array = array.assign_coords(temperature=((), 293.0, {"units": "K"}))
    moved = array.transpose(*draw(st.permutations(dims)), transpose_coords=False)
    nav = tuple(dim for dim in moved.dims if dim in nav)
    roi = draw(rois([moved.sizes[dim] for dim in nav]))
    return Case(moved, nav, sig, roi)


def attributes() -> st.SearchStrategy[dict[str, Any]]:
    every = {"beam": 200, "operator": "A", "units": "counts", "long_name": "electrons"}
    return st.sets(st.sampled_from(sorted(every))).map(lambda keys: {k: every[k] for k in keys})


def coordinates(dim: str, n: int) -> st.SearchStrategy[dict[str, Any]]:
    every = {
        dim: np.arange(n) * 0.5 - 1,
        f"{dim}_number": np.arange(n)[::-1].copy(),
        f"{dim}_text": np.array([f"position {k}" for k in range(n)]),
    }
    return st.sets(st.sampled_from(sorted(every))).map(lambda keys: {k: every[k] for k in keys})


def expected_coords(array: xr.DataArray, dims: Any) -> dict[Any, xr.DataArray]:
    return {k: c for k, c in array.coords.items() if set(c.dims) <= set(dims)}
