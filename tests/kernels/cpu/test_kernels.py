"""First moments of strided and read-only tiles; kernels without a cache folder."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from every_dtype import FOREIGN, KNOWN, sample
from udfdask.kernels.cpu.first_moments import LONGEST, TOGETHER, add_moments, cover, spans_of
from udfdask.kernels.numba_internals.compile import summing_kernel
from udfdask.kernels.numba_internals.rows import as_native, rows_in_memory


def moments_of(tile, mask, origin=(0, 0)):
    out = np.zeros((len(tile), 3))
    readable, turn = as_native(tile)
    flat, frame_step, row_step = rows_in_memory(readable)
    where = cover(spans_of(mask), origin, tile.shape[1:], row_step)
    add_moments(flat, frame_step, turn, where, out)
    return out


def plain_moments(tile, mask, origin=(0, 0)):
    (oy, ox), (_, height, width) = origin, tile.shape
    y, x = np.mgrid[oy : oy + height, ox : ox + width]
    values = tile.astype("f8") * mask[oy : oy + height, ox : ox + width]
    return np.stack([(values * k).sum(axis=(1, 2)) for k in (1, y, x)], axis=1)


@given(
    st.integers(1, 40),
    st.integers(1, 40),
    st.sampled_from([0.1, 0.5, 0.9, 1]),
    st.integers(0, 99),
)
@settings(deadline=None)
def test_each_pixel_of_a_mask_is_covered_once(height, width, density, seed):
    mask = np.random.default_rng(seed).random((height, width)) < density
    spans = spans_of(mask)
    top, left = seed % height, seed % width
    found = cover(spans, (top, left), (height - top, width - left), width + 3)
    again = np.zeros(mask.shape, dtype=int)
    last = top
    for rows, y, x, place, length in found.runs.tolist():
        assert rows in (1, TOGETHER)
        assert place == (y - top) * (width + 3) + x - left
        assert length <= found.width
        assert y >= last - TOGETHER  # in the order of memory
        again[y : y + rows, x : x + length] += 1
        last = max(last, y)
    np.testing.assert_array_equal(again[top:, left:], mask[top:, left:])
    assert not again[:top].any()
    assert not again[:, :left].any()


@pytest.mark.full
@pytest.mark.parametrize("dtype", ["u1", "i1", "u2", "i2"])
def test_extreme_values_of_tall_and_wide_frames_do_not_overflow(dtype):
    limits = np.iinfo(dtype)
    for value in (limits.min, limits.max):
        for shape in ((517, 3), (19, 2 * LONGEST + 5)):
            tile = np.full((1, *shape), value, dtype=dtype)
            mask = np.ones(shape, dtype=bool)
            np.testing.assert_array_equal(moments_of(tile, mask), plain_moments(tile, mask))


@pytest.mark.full
@pytest.mark.parametrize("dtype", [d for d in KNOWN + FOREIGN if np.dtype(d).kind != "c"])
def test_every_dtype(dtype):
    for shape, density in (((2, 37, 21), 1), ((3, 17, 2 * LONGEST + 9), 1), ((2, 26, 50), 0.8)):
        tile = sample(dtype, shape)
        mask = np.random.default_rng(2).random((shape[1] + 2, shape[2] + 1)) < density
        found, wanted = moments_of(tile, mask, (2, 1)), plain_moments(tile, mask, (2, 1))
        if tile.dtype.kind in "biu" and tile.dtype.itemsize <= 2:
            np.testing.assert_array_equal(found, wanted)
        else:
            scale = np.abs(plain_moments(np.abs(tile.astype("f8")), mask, (2, 1))).max()
            np.testing.assert_allclose(found, wanted, rtol=1e-13, atol=1e-15 * scale)


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
@pytest.mark.parametrize("dtype", ["u1", "i2", "u4", "f2", "f4", "f8"])
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
