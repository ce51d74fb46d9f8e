"""Products of frames with dense masks, for many dtypes, sizes and steps in memory."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from every_dtype import FOREIGN, KNOWN, sample
from udfdask.kernels.cpu.dense_products import (
    BLOCK,
    DEPTH,
    LONGEST,
    MOST_MASKS,
    add_dense_products,
    pack,
)
from udfdask.kernels.numba_internals.vector_sums import VECTOR_BYTES
from udfdask.masks.dense_product import real_masks

WIDEST = LONGEST * VECTOR_BYTES // 4


def add(frames, matrix, out, most=None):
    add_dense_products(frames, pack(real_masks(matrix.T, frames.dtype), most), out)


def check(frames, matrix, out, most=None):
    wide = np.result_type(frames.dtype, matrix.dtype, np.float64)
    want = out + frames.astype(wide) @ matrix.astype(wide)
    add(frames, matrix, out, most)
    scale = np.abs(frames).astype("f8") @ np.abs(matrix).astype("f8")
    eps = np.finfo(matrix.dtype).eps
    assert (np.abs(out - want) <= 8 * eps * scale + 1e-300).all()


@pytest.mark.full
@pytest.mark.parametrize("dtype", KNOWN + FOREIGN)
@pytest.mark.parametrize("masks", ["f4", "f8"])
def test_every_dtype(dtype, masks):
    frames = sample(dtype, (5, 4, 77))
    kind = "c" if frames.dtype.kind == "c" else ""
    masks = {"cf4": "c8", "cf8": "c16"}.get(kind + masks, masks)
    matrix = sample(masks, (77, 3), seed=1) / 1000
    matrix = matrix.astype(masks)
    for some in (frames[:, 0], frames[::2, 1], frames[:, 2, ::-1], np.asfortranarray(frames[:, 3])):
        check(some, matrix, np.ones((len(some), 3), np.result_type(masks, "f8")))


@pytest.mark.parametrize("n", [1, 2, 4, DEPTH // 2, DEPTH, DEPTH + 1])
@pytest.mark.parametrize("pixels", [1, 127, WIDEST, WIDEST + 3, 3 * WIDEST + 1])
@pytest.mark.parametrize("masks", [1, 15, 16, 40, MOST_MASKS + 1])
def test_every_size(n, pixels, masks):
    matrix = sample("f4", (pixels, masks), seed=1)
    check(sample("u1", (n, pixels)), matrix, np.zeros((n, masks)))


@given(
    n=st.integers(1, 2 * DEPTH),
    pixels=st.integers(1, 3 * BLOCK * VECTOR_BYTES // 4),
    masks=st.integers(1, 2 * MOST_MASKS),
    most=st.none() | st.integers(1, 3 * BLOCK),
)
def test_any_size(n, pixels, masks, most):
    matrix = sample("f4", (pixels, masks), seed=1)
    larger = sample(">u2", (n, pixels + 5))
    check(larger[:, 2:-3], matrix, np.ones((n, masks), "f4"), most)


@pytest.mark.parametrize("most", [1, 20, 50, 128, 200, 10_000])
def test_whole_numbers_are_exact(most):
    """Use the largest values for which `most` products are exact in float32."""
    frames = np.full((9, 20_000), 255, dtype="u1")
    matrix = np.full((20_000, 2), 2**24 // (255 * most), dtype="f4")
    out = np.zeros((9, 2), dtype="i8")
    add(frames, matrix, out, most)
    assert (out == 20_000 * 255 * int(matrix[0, 0])).all()
    own = frames.astype("f4")  # of the dtype of the matrix, and still in such pieces
    out[:] = 1
    add(own, matrix, out, most)
    assert (out == 1 + 20_000 * 255 * int(matrix[0, 0])).all()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_spoiled_frame_stays_alone(bad):
    """Also in the last pixels, which fill no vector, and if a group of frames is incomplete."""
    n, pixels, masks = 6, 2 * VECTOR_BYTES + 5, 3
    matrix = np.ones((pixels, masks), "f4")
    for frame in range(n):
        for pixel in (0, pixels - 1):
            frames = np.ones((n, pixels), "f4")
            frames[frame, pixel] = bad
            out = np.zeros((n, masks), "f4")
            add(frames, matrix, out)
            np.testing.assert_array_equal(out, np.repeat(frames.sum(1, keepdims=True), masks, 1))
            assert np.isfinite(out).sum() == (n - 1) * masks


@pytest.mark.parametrize("shape", [(0, 4), (3, 0)])
def test_nothing(shape):
    out = np.ones((shape[0], 2))
    add(np.zeros(shape, "u2"), np.zeros((shape[1], 2), "f4"), out)
    assert (out == 1).all()
    add(np.zeros((shape[0], 3), "u2"), np.zeros((3, 0), "f4"), out[:, :0])
