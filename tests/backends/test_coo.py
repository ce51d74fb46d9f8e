"""Frames taken out of sparse.COO arrays, compared with NumPy."""

import numpy as np
import pytest

from udfdask.backends.sparse_rows import coo_starts
from udfdask.backends.sparse_types import coo_rows, coo_take

sparse = pytest.importorskip("sparse")


@pytest.mark.parametrize("dtype", [None, "int32", "uint16", "uint8"])
def test_some_frames(dtype):
    """Take neighboring frames, and frames in any order, also with narrow coordinates."""
    rng = np.random.default_rng(0)
    for sig in [(), (3,), (4, 2)]:
        dense = rng.poisson(0.3, (250, *sig))
        filled = np.nonzero(dense)
        coo = sparse.COO(np.array(filled), dense[filled], dense.shape, idx_dtype=dtype)
        starts, places = coo_starts(coo), rng.permutation(250)
        for first, stop in [(0, 250), (7, 7), (13, 211)]:
            chosen = places[first:stop]
            for cut, wanted in (
                (coo_rows(coo, starts, first, stop), dense[first:stop]),
                (coo_take(coo, starts, chosen), dense[chosen]),
            ):
                np.testing.assert_array_equal((cut + cut).todense(), 2 * wanted)
