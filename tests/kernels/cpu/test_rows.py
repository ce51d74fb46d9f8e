"""Tiles as rows for kernels: views if the pixels of a frame are contiguous."""

import math

import numpy as np
import pytest

from udfdask.kernels.cpu.pixel_sums import add_pixels
from udfdask.kernels.numba_internals.rows import (
    as_native,
    as_real,
    as_rows,
    rows_in_memory,
    wider,
)

BLOCK = np.arange(6 * 4 * 5, dtype="int32").reshape(6, 4, 5)
LAYOUTS = {
    "a block": (BLOCK, True),
    "some frames": (BLOCK[1:4], True),
    "every second frame": (BLOCK[::2], True),
    "rows of frames": (BLOCK[1:5, 1:3], True),
    "a single frame": (BLOCK[2:3, 1:3], True),
    "one frame again and again": (np.broadcast_to(BLOCK[0], (3, 4, 5)), True),
    "columns of frames": (BLOCK[:, :, 1:3], False),
    "transposed": (BLOCK.T, False),
    "backwards": (BLOCK[::-1], False),
    "one value again and again": (np.broadcast_to(np.int32(3), (3, 4, 5)), False),
    "in Fortran order": (np.asfortranarray(BLOCK), False),
    "a window that slides": (
        np.lib.stride_tricks.sliding_window_view(BLOCK.reshape(-1), (7,)),
        True,
    ),
}


@pytest.mark.parametrize(("tile", "is_view"), LAYOUTS.values(), ids=LAYOUTS)
def test_every_layout(tile, is_view):
    rows = as_rows(tile)
    assert rows.frames == len(tile)
    assert rows.width == tile[0].size
    assert rows.flat.flags.c_contiguous
    assert not rows.flat.flags.writeable
    assert np.shares_memory(rows.flat, tile) == is_view
    for i, frame in enumerate(tile):
        got = rows.flat[i * rows.step : i * rows.step + rows.width]
        np.testing.assert_array_equal(got, frame.reshape(-1))


def test_the_tile_stays_writable():
    tile = BLOCK.copy()
    as_rows(tile)
    assert tile.flags.writeable


def test_what_is_not_aligned_is_copied():
    raw = np.zeros(8 * 6 + 1, dtype="u1")
    tile = raw[1:].view("f8").reshape(2, 3)
    assert not tile.flags.aligned
    assert as_rows(tile).flat.flags.aligned


@pytest.mark.parametrize("most", [1, 2, 4, 6, 7])
def test_groups_of_frames(most):
    groups = as_rows(BLOCK[:, 1:3]).cut(most)
    assert sum(g.frames for g in groups) == 6
    assert all(g.frames <= most for g in groups)
    got = [g.flat[i * g.step : i * g.step + g.width] for g in groups for i in range(g.frames)]
    np.testing.assert_array_equal(np.stack(got), BLOCK[:, 1:3].reshape(6, -1))


def test_truth_and_half_precision():
    assert as_rows(np.ones((2, 3), dtype=bool)).flat.dtype == np.uint8
    assert as_rows(np.ones((2, 3), dtype="f2")).flat.dtype == np.float32


@pytest.mark.parametrize("dtype", ["<f2", ">f2"])
def test_each_number_in_half_precision_is_read(dtype):
    numbers = np.arange(1 << 16, dtype=np.uint16).view(np.float16).reshape(-1, 1)
    total = np.zeros(len(numbers))
    add_pixels(numbers.astype(dtype), total)
    np.testing.assert_array_equal(total, numbers[:, 0].astype("f8"))


def test_half_precision_that_is_not_aligned_is_converted():
    raw = np.ones(13, dtype="u1")
    tile, swap = as_native(raw[1:].view("f2").reshape(2, 3))
    assert (tile.dtype, swap) == (np.float16, None)


def test_complex_numbers_are_pairs():
    tile = (BLOCK + 1j).astype("c8")
    rows = as_rows(tile[:, 1:3]).as_real()
    assert (rows.step, rows.width) == (2 * 20, 2 * 10)
    np.testing.assert_array_equal(rows.flat[40:60:2], BLOCK[1, 1:3].reshape(-1))
    assert as_rows(BLOCK).as_real().step == 20
    out = np.zeros((2, 3), dtype="c16")
    as_real(out)[1] = 7
    assert out[0, 0] == 7j


def test_dtypes():
    assert wider(np.dtype("u2")) == np.uint32
    assert wider(np.dtype("i4")) == np.int64
    assert wider(np.dtype("f4")) == np.float64
    assert wider(np.dtype(">u2")) == np.uint32
    assert wider(np.dtype("m8[s]")) is None


def test_steps_are_not_negative():
    """Kernels take steps as unsigned numbers; an axis of length 1 can have a negative stride."""
    for shape in [(1, 3, 5), (4, 1, 5), (1, 1, 1), (4, 3, 5)]:
        tile = np.arange(math.prod(shape), dtype="i4").reshape(shape)
        for axes in [(0,), (1,), (2,), (0, 1, 2)]:
            flipped = np.flip(tile, axes)
            flat, frame_step, row_step = rows_in_memory(flipped)
            assert min(frame_step, row_step) >= 0
            steps = np.array([frame_step, row_step, 1])
            places = np.tensordot(steps, np.indices(shape), 1)
            np.testing.assert_array_equal(flat[places], flipped)
