"""The chunk grid, compared with counting frames one by one; its pickled size."""

import itertools
import pickle

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from suites import examples
from udfdask.geometry.chunk_grid import Grid

axes = st.lists(st.integers(0, 3), min_size=1, max_size=4).map(tuple)


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(axes, max_size=3), st.sampled_from([None, 0.0, 0.3, 1.0]), st.booleans())
def test_chunks_and_rows(nav_chunks, share, pickled):
    shape = tuple(map(sum, nav_chunks))
    rng = np.random.default_rng(len(nav_chunks))
    roi = None if share is None else np.asarray(rng.random(shape) < share)
    grid = Grid.of(nav_chunks, roi)
    if pickled:
        grid = pickle.loads(pickle.dumps(grid))
    chosen = np.ones(shape, bool) if roi is None else roi
    numbers = np.full(shape, -1)
    numbers[chosen] = np.arange(chosen.sum())
    assert grid.nav_chunks == tuple(nav_chunks)
    assert (grid.shape, grid.n_frames) == (shape, chosen.sum())
    chunk = rows = 0
    for index in itertools.product(*(range(len(sizes)) for sizes in nav_chunks)):
        start = tuple(sum(sizes[:i]) for sizes, i in zip(nav_chunks, index, strict=True))
        sizes = tuple(sizes[i] for sizes, i in zip(nav_chunks, index, strict=True))
        here = numbers[tuple(slice(a, a + n) for a, n in zip(start, sizes, strict=True))]
        expected = list(here[here >= 0])
        if not expected:
            continue
        assert (grid.index(chunk), grid.chunk_at(index)) == (index, chunk)
        assert grid.bounds(chunk) == (start, sizes)
        assert (grid.count(chunk), grid.offset(chunk)) == (len(expected), rows)
        assert grid.loaded[chunk] == here.size
        assert list(grid.rows(chunk)) == expected
        chunk, rows = chunk + 1, rows + len(expected)
    assert (grid.n_chunks, grid.offset(chunk), grid.n_rows(0, chunk)) == (chunk, rows, rows)
    assert len(grid.loaded) == chunk


def test_equal_chunks_pickle_to_a_few_bytes():
    few, many = (len(pickle.dumps(Grid.of([(2,) * n + (1,), (3,) * n]))) for n in (10, 10_000))
    assert many < few + 20
