"""SumUDF and SumSigUDF against NumPy on the whole array."""

import math

import dask
import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from every_dtype import FOREIGN, KNOWN, sample, summable
from udfdask.corrections import CorrectionSet
from udfdask.geometry.tiling import TILE_BYTES
from udfdask.udfs import StdDevUDF, SumSigUDF, SumUDF, VirtualDetectorUDF

SHAPE = (4, 6, 7, 9)
CHUNKS = {
    "one": SHAPE,
    "scan": (3, 4, 7, 9),
    "signal": (2, 6, 3, 4),
    "one task a signal chunk": (2, 6, 2, 2),
    "frames": (1, 1, 7, 9),
}
TILES = ["1 MiB", "100 B"]


def natural(dtype):
    """The dtype that NumPy's sum has; float32 for float16, int64 for narrow unsigned integers."""
    found = np.zeros(1, dtype).sum().dtype
    signed = found == "u8" and np.dtype(dtype).itemsize < 8
    return np.dtype("f4") if found == "f2" else np.dtype("i8") if signed else found


def sums(data, **options):
    total, each = ud.run_udf(data, [SumUDF(), SumSigUDF()], **options)
    return ud.compute(total["intensity"], each["intensity"], scheduler="synchronous")


def same(got, want, dtype, rounded=1):
    """Integers exactly; floats as float64 has them, rounded so many times."""
    assert got.dtype == natural(dtype)
    if got.dtype.kind in "iu":
        np.testing.assert_array_equal(got, want)
    else:
        eps = float(np.finfo(got.dtype).eps)
        atol = 1e-9 if rounded == 1 else 1e4 * eps  # of parts that cancel
        np.testing.assert_allclose(got, want, rtol=eps * rounded, atol=atol)


@pytest.mark.full
@pytest.mark.parametrize("dtype", KNOWN + FOREIGN)
@pytest.mark.parametrize("chunks", CHUNKS.values(), ids=CHUNKS)
@pytest.mark.parametrize("tiles", TILES)
def test_every_dtype_and_cut(dtype, chunks, tiles):
    data = summable(dtype, SHAPE)
    wide = data.astype({"f": "g", "c": "G"}.get(data.dtype.kind, natural(dtype)))
    x = da.from_array(data, chunks=chunks)
    with dask.config.set({"udfdask.tile-bytes": tiles}):
        total, each = sums(x)
    same(total, wide.sum(axis=(0, 1)), dtype)
    same(each, wide.sum(axis=(2, 3)), dtype, x.numblocks[2] * x.numblocks[3])


def test_chunks_of_single_precision_are_added_up_in_double():
    data = np.full((300, 40, 1, 2), 0.1, dtype="f4")
    x = da.from_array(data, chunks=(1, 40, 1, 2))
    want = np.float32(math.fsum(data[..., 0, 0].reshape(-1).tolist()))
    for found in (
        ud.run_udf(x, SumUDF())["intensity"].compute(scheduler="synchronous"),
        list(ud.run_udf_iter(x, SumUDF(), scheduler="synchronous"))[-1].buffers[0]["intensity"],
    ):
        assert (found == want).all()


@pytest.mark.parametrize(
    ("data", "asked"),
    [
        ("u1", "u2"),
        ("u1", "i2"),
        ("u2", "f4"),
        ("i2", "f8"),
        ("i2", "i8"),
        ("u4", "i8"),
        ("i4", "c8"),
        ("b1", "u1"),
        ("b1", "i8"),
        ("f4", "f8"),
        ("f8", "f4"),
        ("f4", "f2"),
        ("f4", "c16"),
        ("c8", "c16"),
        ("u2", ">f8"),
    ],
)
def test_other_dtypes_of_the_result(data, asked):
    array = sample(data, (3, 5, 2, 9)) if data != "f4" else sample(data, (3, 5, 2, 9)) / 100
    x = da.from_array(array, chunks=(2, 2, 1, 5))
    for udf, axes in ((SumUDF(dtype=asked), (0, 1)), (SumSigUDF(dtype=asked), (2, 3))):
        got = ud.run_udf(x, udf)["intensity"].compute(scheduler="synchronous")
        assert got.dtype == np.dtype(asked)
        want = array.astype(natural(data)).sum(axis=axes).astype(asked)
        np.testing.assert_allclose(got, want, rtol=1e-2 if asked == "f2" else 1e-5, atol=1e-3)


@pytest.mark.parametrize("cls", [SumUDF, SumSigUDF])
@pytest.mark.parametrize(
    ("data", "asked", "error"),
    [
        ("f4", "i8", ud.ArgumentTypeError),
        ("f4", "?", ud.ArgumentTypeError),
        ("c8", "f8", ud.ArgumentTypeError),
        ("i2", "u8", ud.ArgumentTypeError),
        ("u2", "O", ud.ArgumentTypeError),
        ("u2", "U9", ud.ArgumentTypeError),
        ("u2", "nonsense", ud.ArgumentTypeError),
        ("u2", "u2", ud.ArgumentValueError),
        ("i1", "i2", ud.ArgumentValueError),
        ("u8", "i8", ud.ArgumentValueError),
    ],
)
def test_dtypes_that_cannot_hold_the_sum(cls, data, asked, error):
    x = da.zeros((20, 20, 20, 20), dtype=data)
    with pytest.raises(error):
        ud.run_udf(x, cls(dtype=asked))


def test_a_narrow_dtype_that_fits_the_frames_of_the_region():
    x = da.full((20, 20, 4, 4), 255, dtype="u1")
    with pytest.raises(ud.ArgumentValueError, match="sum of 400 values of uint8"):
        ud.run_udf(x, SumUDF(dtype="u2"))
    res = ud.run_udf(x, SumUDF(dtype="u2"), roi=np.arange(400).reshape(20, 20) < 257)
    assert (res["intensity"].compute(scheduler="synchronous") == 65535).all()


def test_times_are_added_up_by_numpy():
    data = np.arange(16).reshape(2, 2, 2, 2).astype("m8[s]")
    total, each = sums(da.from_array(data, chunks=1))
    np.testing.assert_array_equal(total, data.sum(axis=(0, 1)))
    np.testing.assert_array_equal(each, data.sum(axis=(2, 3)))


@pytest.mark.parametrize("cls", [SumUDF, SumSigUDF])
def test_dates_have_no_sum(cls):
    with pytest.raises(ud.ArgumentTypeError, match=r"dates have no sum, .* datetime64\[s\]"):
        ud.run_udf(da.zeros((2, 2, 2, 2), dtype="M8[s]"), cls())


@pytest.mark.parametrize("order", ["F", "backwards", "transposed"])
def test_blocks_in_any_order_of_memory(order):
    data = sample("u2", SHAPE)
    if order == "F":
        data = np.asfortranarray(data)
    elif order == "backwards":
        data = data[::-1, :, ::-1]
    else:
        data = data.transpose(2, 3, 0, 1)
    total, each = sums(da.from_array(data, chunks=data.shape))
    np.testing.assert_array_equal(total, data.sum(axis=(0, 1)))
    np.testing.assert_array_equal(each, data.sum(axis=(2, 3)))


@pytest.mark.parametrize("cls", [SumUDF, SumSigUDF, StdDevUDF])
@pytest.mark.parametrize(
    ("side", "alone", "together"),
    [
        (128, (20, 128, 128), (20, 128, 128)),
        (512, (20, 512, 512), (8, 512, 512)),
        (2048, (20, 64, 2048), (16, 64, 2048)),
    ],
)
def test_tiles_are_deep(cls, side, alone, together):
    """A whole chunk if it is read once, by one UDF or for sums that UDFs share; else a cache."""
    x = da.zeros((4, 5, side, side), dtype="u2", chunks=-1)
    assert ud.run_udf(x, cls()).explain().tile_shape == alone
    assert ud.run_udf(x, [cls(), SumUDF()])[0].explain().tile_shape == alone
    other = VirtualDetectorUDF("disk", r=3)
    assert ud.run_udf(x, [cls(), other])[0].explain().tile_shape == together
    assert ud.run_udf(x.astype(">u2"), cls()).explain().tile_shape == alone
    assert ud.run_udf(x.astype("f2"), cls()).explain().tile_shape == together
    dark = np.zeros((side, side), dtype="f4")
    corrected = ud.run_udf(x, cls(), corrections=CorrectionSet(dark=dark)).explain().tile_shape
    if cls is SumUDF:  # which corrects the sum
        assert corrected[0] == alone[0]
    else:
        assert corrected[0] <= together[0]
        assert np.prod(corrected) * 4 <= TILE_BYTES


@pytest.mark.parametrize("cls", [SumUDF, SumSigUDF, StdDevUDF])
def test_frames_that_must_be_copied_are_copied_a_tile_at_a_time(cls, monkeypatch):
    sizes = []
    process = cls.process_tile
    monkeypatch.setattr(
        cls, "process_tile", lambda self, tile: sizes.append(len(tile)) or process(self, tile)
    )
    data = sample("u2", (6, 8, 4, 5))
    every_other = np.arange(48).reshape(6, 8) % 2 == 0
    with dask.config.set({"udfdask.tile-bytes": 5 * data[0, 0].nbytes, "scheduler": "synchronous"}):
        for lay, roi, depth in [
            (np.asarray, None, 48),
            (np.asarray, every_other, 5),
            (np.asfortranarray, None, 5),
            (lambda block: block[::-1, ::-1], None, 5),
            (lambda block: np.concatenate([block, block], axis=1)[:, :8], None, 5),
            (lambda block: np.repeat(block, 2, axis=1)[:, ::2], None, 48),
        ]:
            sizes.clear()
            x = da.from_array(data, chunks=-1).map_blocks(lay, meta=data[:0])
            ud.run_udf(x, cls(), roi=roi).compute()
            assert max(sizes) == depth
