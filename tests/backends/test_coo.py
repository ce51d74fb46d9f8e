"""Frames taken out of sparse.COO arrays, compared with NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suites import examples
from udfdask.backends.sparse_rows import coo_starts
from udfdask.backends.sparse_types import coo_rows, coo_take

sparse = pytest.importorskip("sparse")

fast = settings(deadline=None, max_examples=examples(60))


@st.composite
def frames(draw):
    """Draw a dense array with many zeros, and the same as COO, also with narrow coordinates."""
    n = draw(st.integers(1, 300))
    sig = tuple(draw(st.lists(st.integers(1, 4), max_size=2)))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    filled = rng.random((n, *sig)) < draw(st.sampled_from([0, 0.05, 0.5]))
    dense = np.where(filled, rng.integers(1, 9, (n, *sig)), 0)
    dtypes = [None, "int32", "uint16", *(["uint8"] if n < 256 else [])]
    dtype, filled = draw(st.sampled_from(dtypes)), np.nonzero(dense)
    return dense, sparse.COO(np.array(filled), dense[filled], dense.shape, idx_dtype=dtype)


@fast
@given(frames(), st.data())
def test_some_frames(both, data):
    """Take neighboring frames, and frames in any order."""
    dense, coo = both
    starts = coo_starts(coo)
    first, stop = sorted(data.draw(st.tuples(*[st.integers(0, len(dense))] * 2)))
    places = np.array(data.draw(st.permutations(range(len(dense))))[first:stop], dtype=int)
    for cut, chosen in (
        (coo_rows(coo, starts, first, stop), dense[first:stop]),
        (coo_take(coo, starts, places), dense[places]),
    ):
        np.testing.assert_array_equal(cut.todense(), chosen)
        np.testing.assert_array_equal((cut + cut).todense(), 2 * chosen)
