"""Kernels on tiles as they lie in memory: strided, read-only, and without a folder to keep them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from udfdask.numeric.compiled import summing_kernel
from udfdask.numeric.frame_moments import LONGEST, add_moments, cut_spans, spans_of
from udfdask.numeric.pixel_rows import rows_in_memory


def moments_of(tile, mask, origin=(0, 0)):
    out = np.zeros((len(tile), 3))
    flat, frame_step, row_step = rows_in_memory(tile)
    add_moments(flat, frame_step, cut_spans(spans_of(mask), origin, tile.shape[1:], row_step), out)
    return out


def plain_moments(tile, mask, origin=(0, 0)):
    (oy, ox), (_, height, width) = origin, tile.shape
    y, x = np.mgrid[oy : oy + height, ox : ox + width]
    values = tile.astype("f8") * mask[oy : oy + height, ox : ox + width]
    return np.stack([(values * k).sum(axis=(1, 2)) for k in (1, y, x)], axis=1)


@given(
    st.tuples(st.integers(1, 5), st.integers(1, 5)),
    st.integers(0, 3).flatmap(lambda k: st.integers(max(1, k * LONGEST - 2), k * LONGEST + 2)),
    st.integers(0, 99),
)
@settings(deadline=None)
def test_spans_are_a_mask_and_never_too_long(size, width, seed):
    mask = np.random.default_rng(seed).random((size[0], width)) < size[1] / 5
    spans = spans_of(mask)
    again = np.zeros(mask.shape, dtype=int)
    for y, start, stop in spans:
        assert 0 < stop - start <= LONGEST
        again[y, start:stop] += 1
    np.testing.assert_array_equal(again, mask)


LAYOUTS = {
    "contiguous": lambda data: data.copy(),
    "every other frame": lambda data: np.repeat(data, 2, axis=0)[::2],
    "part of a frame": lambda data: np.pad(data, ((0, 0), (1, 2), (3, 4)))[:, 1:-2, 3:-4],
    "one frame over and over": lambda data: np.broadcast_to(data[:1], data.shape),
    "rows from the last": lambda data: data[:, ::-1].copy()[:, ::-1],
    "transposed": lambda data: np.ascontiguousarray(data.transpose(0, 2, 1)).transpose(0, 2, 1),
    "every other pixel": lambda data: np.repeat(data, 2, axis=2)[..., ::2],
    "unaligned": lambda data: np.frombuffer(b"." + data.tobytes(), data.dtype, offset=1).reshape(
        data.shape
    ),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["u1", "i2", "u4", "f4", "f8"])
def test_tiles_lie_in_memory_as_they_like(layout, dtype):
    data = np.random.default_rng(0).integers(0, 90, (4, 7, 6)).astype(dtype)
    tile = LAYOUTS[layout](data)
    tile.flags.writeable = False
    mask = np.random.default_rng(1).random((9, 9)) < 0.7
    wanted = plain_moments(tile, mask, origin=(2, 3))
    np.testing.assert_allclose(moments_of(tile, mask, origin=(2, 3)), wanted, rtol=1e-13)


def test_a_tile_is_copied_only_if_it_must_be():
    data = np.zeros((4, 7, 6), dtype="u2")
    for name in ("contiguous", "every other frame", "part of a frame", "one frame over and over"):
        tile = LAYOUTS[name](data)
        flat, *_ = rows_in_memory(tile)
        assert np.shares_memory(flat, tile), name
        assert not flat.flags.writeable


def test_a_kernel_needs_no_folder():
    namespace = {}
    exec("def double(x):\n    return 2 * x", namespace)  # it has no file
    assert summing_kernel(namespace["double"])(4) == 8


def test_nan_is_not_optimised_away():
    tile = np.ones((2, 3, 3))
    tile[1, 1, 1] = np.nan
    found = moments_of(tile, np.ones((3, 3), dtype=bool))
    np.testing.assert_array_equal(np.isnan(found), [[False] * 3, [True] * 3])
