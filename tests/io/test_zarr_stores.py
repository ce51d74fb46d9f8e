"""Random valid zarr stores: each is read, and the values are those of zarr-python itself."""

import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from suites import examples
from udfdask.io import open_file

zarr = pytest.importorskip("zarr", reason="zarr is in the io extra")
numcodecs = pytest.importorskip("numcodecs", reason="it comes with zarr")
codecs = zarr.codecs

SHAPE = (5, 4, 6, 7)
DTYPES = ["u1", "i2", "u2", ">u2", "i4", ">i4", "f4", ">f8", "c8", "f2", "b1", "u8"]
ZSTD, CHECKSUM = codecs.ZstdCodec(), codecs.Crc32cCodec()
BLOSC = codecs.BloscCodec(cname="lz4", shuffle="bitshuffle")
SINGLE = [ZSTD, codecs.ZstdCodec(checksum=True), codecs.GzipCodec(), BLOSC, CHECKSUM]
COMPRESSORS = {
    2: [
        *(codec() for codec in (numcodecs.Zstd, numcodecs.LZ4, numcodecs.GZip, numcodecs.Zlib)),
        *(numcodecs.BZ2(), numcodecs.Blosc("zstd"), numcodecs.Blosc(shuffle=2)),
    ],
    3: [[], *([each] for each in SINGLE), [ZSTD, CHECKSUM], [CHECKSUM, ZSTD]],
}


@st.composite
def stores(draw):
    """Options of an array, and the parts of it that are written."""
    pick = lambda *values: draw(st.sampled_from(values))  # noqa: E731
    zarr_format = pick(2, 3)
    chunks = tuple(draw(st.integers(1, size + 1)) for size in SHAPE)
    layout = {
        "zarr_format": zarr_format,
        "chunks": chunks,
        "dtype": pick(*DTYPES),
        "fill_value": pick(0, 1),
        "config": {"write_empty_chunks": pick(True, False)},
        "compressors": pick(*COMPRESSORS[zarr_format]),
        "chunk_key_encoding": {
            "name": "v2" if zarr_format == 2 else pick("v2", "default"),
            "separator": pick(".", "/"),
        },
    }
    if zarr_format == 2:
        shuffle = numcodecs.Shuffle(np.dtype(layout["dtype"]).itemsize)  # others cannot be written
        layout |= {"order": pick("C", "F"), "filters": pick(None, [shuffle])}
    else:
        layout["dtype"] = layout["dtype"].lstrip(">")
        layout["filters"] = pick([], [codecs.TransposeCodec(order=(3, 1, 0, 2))])
        layout["serializer"] = codecs.BytesCodec(endian=pick("little", "big"))
        if pick(True, False):
            index = [codecs.BytesCodec(endian=pick("little", "big")), CHECKSUM]
            sharding = codecs.ShardingCodec(
                chunk_shape=chunks,
                codecs=[*layout["filters"], layout["serializer"], *layout["compressors"]],
                index_codecs=index[: pick(1, 2)],
                index_location=pick("start", "end"),
            )
            shards = tuple(size * pick(1, 2, 3) for size in chunks)
            layout |= {"filters": None, "compressors": None, "serializer": sharding}
            layout["chunks"] = shards
    ends = st.tuples(*(st.integers(0, size) for size in (*SHAPE[:2], *SHAPE[:2])))
    rows = [(slice(a, c), slice(b, d)) for a, b, c, d in draw(st.lists(ends, max_size=3))]
    return layout, pick(rows, [(slice(None), slice(None))])


@given(store=stores(), data=st.data())
@settings(
    deadline=None,
    max_examples=examples(40),
    phases=[Phase.generate],  # shrinking a store takes minutes
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_each_valid_store_is_what_zarr_reads(tmp_path, store, data):
    layout, written = store
    path = tmp_path / "a.zarr"
    values = np.random.default_rng(3).integers(0, 3, SHAPE).astype(layout["dtype"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # types and codecs that are in no specification
        array = zarr.create_array(str(path), shape=SHAPE, overwrite=True, **layout)
        for rows in written:
            array[rows] = values[rows]
        expected = zarr.open_array(str(path), mode="r")[:]
    chunks = tuple(data.draw(st.integers(1, size)) for size in SHAPE)
    opened = open_file(path, chunks=chunks).array
    found = opened.compute(scheduler="synchronous")
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == opened.dtype == expected.dtype
    index = tuple(data.draw(st.slices(size) | st.integers(-size, size - 1)) for size in SHAPE)
    np.testing.assert_array_equal(opened[index].compute(scheduler="synchronous"), expected[index])


KNOWN = {
    "plain": None,
    "zstd": codecs.ZstdCodec(level=2),
    "zstd with checksum": codecs.ZstdCodec(checksum=True),
    "gzip": codecs.GzipCodec(),
    "blosc": BLOSC,
    "blosc zstd": codecs.BloscCodec(cname="zstd", typesize=2),
}
OLDER = [None, *(getattr(numcodecs, name)() for name in ("Zstd", "Blosc", "LZ4", "GZip", "Zlib"))]
OWN = {
    **{f"3, {n}": {"zarr_format": 3, "compressors": c} for n, c in KNOWN.items()},
    **{f"shards, {n}": {"shards": (4, 3, 12, 14), "compressors": c} for n, c in KNOWN.items()},
    **{f"2, {c}": {"zarr_format": 2, "compressors": c} for c in OLDER},
    "slashes": {"zarr_format": 2, "chunk_key_encoding": {"name": "v2", "separator": "/"}},
    "byte order": {"serializer": codecs.BytesCodec(endian="big")},
}
"""Options of arrays whose chunks are read without zarr."""


def test_known_codecs_are_read_without_zarr(tmp_path, monkeypatch):
    values = np.random.default_rng(9).poisson(0.3, (5, 7, 12, 10))
    paths = {}
    for name, options in OWN.items():
        for dtype in ("<u2", "u1", "f4", ">i4"):
            if not (name == "byte order" and dtype == "u1"):
                path = paths[name, dtype] = str(tmp_path / f"{len(paths)}.zarr")
                layout = {"shape": values.shape, "chunks": (2, 3, 12, 7), "dtype": dtype}
                zarr.create_array(path, **layout, **options)[:] = values

    def refuse(self, index):
        raise AssertionError("zarr reads")

    monkeypatch.setattr(zarr.Array, "__getitem__", refuse)
    for case, path in paths.items():
        array = open_file(path, chunks=(3, 4, -1, -1)).array
        found = array.compute(scheduler="synchronous")
        np.testing.assert_array_equal(found, values, err_msg=str(case))
        assert found.dtype == array.dtype
