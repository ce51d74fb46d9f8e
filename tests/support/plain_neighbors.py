"""Frames around each scan position in plain NumPy, as a reference."""

import numpy as np
from hypothesis import strategies as st

from neighborhood_udfs import MODES
from suites import few_of

BOUNDARIES = tuple(MODES)


def neighbors(data, nav_dims, window, boundary="mask"):
    """Yield for each place in a window its index, this neighbor of every frame, and which exist."""
    nav = data.shape[:nav_dims]
    pad = [(n // 2, n // 2) for n in window]
    rest = [(0, 0)] * (data.ndim - nav_dims)
    wide = np.pad(data, pad + rest, mode=MODES[boundary])
    exists = np.pad(np.ones(nav, bool), pad, mode=MODES[boundary])
    for index in np.ndindex(*window):
        part = tuple(slice(k, k + n) for k, n in zip(index, nav, strict=True))
        yield index, wide[part], exists[part]


@st.composite
def scans(draw, dtypes=("uint16", "uint8", "int32", "float64", ">u2", "bool", "float32")):
    nav = draw(st.lists(st.integers(1, 5), min_size=1, max_size=3).map(tuple))
    sig = draw(st.lists(st.integers(1, 4), min_size=1, max_size=2).map(tuple))
    dtype = np.dtype(draw(st.sampled_from(few_of(dtypes))))
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    data = rng.integers(0, 2 if dtype.kind == "b" else 200, nav + sig).astype(dtype)
    chunks = tuple(draw(st.integers(1, n)) for n in nav + sig)
    roi = draw(
        st.none() | st.integers(0, 99).map(lambda s: np.random.default_rng(s).random(nav) > 0.4)
    )
    return data, len(nav), chunks, roi
