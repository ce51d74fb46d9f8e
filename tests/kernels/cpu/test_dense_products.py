"""Products of frames with dense masks, for many dtypes, sizes and steps in memory."""

import numpy as np
import pytest

from every_dtype import FOREIGN, KNOWN, sample
from udfdask.kernels.cpu.dense_products import DEPTH, SMALL, WIDEST, add_dense_products


def check(frames, matrix, out, most=None):
    wide = np.result_type(frames.dtype, matrix.dtype, np.float64)
    want = out + frames.astype(wide) @ matrix.astype(wide)
    add_dense_products(frames, matrix, out, most)
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


@pytest.mark.parametrize("n", [1, 2, DEPTH // 2, DEPTH, DEPTH + 1])
@pytest.mark.parametrize("pixels", [1, 127, WIDEST, WIDEST + 3, 3 * WIDEST + 1])
@pytest.mark.parametrize("masks", [1, 15, 16, 40])
def test_every_size(n, pixels, masks):
    assert SMALL // 16 < 1 << 16 <= SMALL // 15  # on both sides of the change
    matrix = sample("f4", (pixels, masks), seed=1)
    check(sample("u1", (n, pixels)), matrix, np.zeros((n, masks)))


@pytest.mark.parametrize("most", [128, 200, 10_000])
def test_whole_numbers_are_exact(most):
    """Use the largest values for which `most` products are exact in float32."""
    frames = np.full((9, 20_000), 255, dtype="u1")
    matrix = np.full((20_000, 2), 2**24 // (255 * most), dtype="f4")
    out = np.zeros((9, 2), dtype="i8")
    add_dense_products(frames, matrix, out, most)
    assert (out == 20_000 * 255 * int(matrix[0, 0])).all()
    own = frames.astype("f4")  # of the dtype of the matrix, and still in such pieces
    out[:] = 1
    add_dense_products(own, matrix, out, most)
    assert (out == 1 + 20_000 * 255 * int(matrix[0, 0])).all()


@pytest.mark.parametrize("shape", [(0, 4), (3, 0)])
def test_nothing(shape):
    out = np.ones((shape[0], 2))
    add_dense_products(np.zeros(shape, "u2"), np.zeros((shape[1], 2), "f4"), out)
    assert (out == 1).all()
