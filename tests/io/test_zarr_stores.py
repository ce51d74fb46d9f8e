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

SHAPE = (5, 4, 6, 7)
DTYPES = ["u1", "i2", "u2", ">u2", "i4", ">i4", "f4", ">f8", "c8", "f2", "b1", "u8"]


def layouts_of_format_2():
    """Options of arrays in zarr format 2."""
    compressors = [
        numcodecs.Zstd(),
        numcodecs.Blosc(shuffle=numcodecs.Blosc.BITSHUFFLE),
        numcodecs.Blosc("zstd"),
        numcodecs.LZ4(),
        numcodecs.GZip(),
        numcodecs.Zlib(),
        numcodecs.BZ2(),
    ]
    return st.fixed_dictionaries(
        {
            "zarr_format": st.just(2),
            "dtype": st.sampled_from(DTYPES),
            "compressors": st.none() | st.sampled_from(compressors),
            "filters": st.none() | st.just([numcodecs.Shuffle(2)]),
            "order": st.sampled_from("CF"),
            "chunk_key_encoding": separators("v2"),
        }
    )


def layouts_of_format_3():
    """Options of arrays in zarr format 3, without shards."""
    codecs = zarr.codecs
    zstd, checksum = codecs.ZstdCodec(), codecs.Crc32cCodec()
    compressors = [
        zstd,
        codecs.ZstdCodec(checksum=True),
        codecs.GzipCodec(),
        codecs.BloscCodec(cname="lz4", shuffle="bitshuffle"),
        checksum,
        [zstd, checksum],
        [checksum, zstd],
    ]
    transposed = [codecs.TransposeCodec(order=(3, 1, 0, 2))]
    return st.fixed_dictionaries(
        {
            "zarr_format": st.just(3),
            "dtype": st.sampled_from([dtype.lstrip(">") for dtype in DTYPES]),
            "compressors": st.none() | st.sampled_from(compressors),
            "filters": st.none() | st.just(transposed),
            "serializer": st.sampled_from(["little", "big"]).map(
                lambda e: codecs.BytesCodec(endian=e)
            ),
            "chunk_key_encoding": separators("default") | separators("v2"),
        }
    )


def separators(name):
    """Names of the files of chunks."""
    return st.sampled_from("./").map(lambda each: {"name": name, "separator": each})


@st.composite
def sharded(draw, layout, chunks):
    """Options of an array in shards of some of its chunks."""
    codecs = zarr.codecs
    order = codecs.BytesCodec(endian=draw(st.sampled_from(["little", "big"])))
    compressors = layout["compressors"] or []
    inner = [*(layout["filters"] or []), layout["serializer"]]
    inner += compressors if isinstance(compressors, list) else [compressors]
    shards = tuple(size * draw(st.integers(1, 3)) for size in chunks)
    sharding = codecs.ShardingCodec(
        chunk_shape=chunks,
        codecs=inner,
        index_codecs=[order, codecs.Crc32cCodec()] if draw(st.booleans()) else [order],
        index_location=draw(st.sampled_from(["start", "end"])),
    )
    plain = {"filters": None, "compressors": None, "serializer": sharding}
    return {**layout, **plain, "chunks": shards}


@st.composite
def stores(draw):
    """Options of an array, and the parts of it that are written."""
    layout = draw(layouts_of_format_2() | layouts_of_format_3())
    chunks = tuple(draw(st.integers(1, size + 1)) for size in SHAPE)
    if layout["zarr_format"] == 3 and draw(st.booleans()):
        layout = draw(sharded(layout, chunks))
    else:
        layout["chunks"] = chunks
    layout["fill_value"] = draw(st.sampled_from([0, 1]))
    layout["config"] = {"write_empty_chunks": draw(st.booleans())}
    rows = draw(st.lists(st.tuples(*(ranges(size) for size in SHAPE[:2])), max_size=3))
    return layout, [(slice(None), slice(None))] if draw(st.booleans()) else rows


def ranges(size):
    """Parts of an axis without steps."""
    return st.tuples(st.integers(0, size), st.integers(0, size)).map(lambda ends: slice(*ends))


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
