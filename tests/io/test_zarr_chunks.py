"""Stored chunks that are read without zarr's own pipeline: the values that zarr reads."""

import numpy as np
import pytest

from udfdask.io import open_file

zarr = pytest.importorskip("zarr", reason="zarr is in the io extra")
numcodecs = pytest.importorskip("numcodecs", reason="it comes with zarr")

VALUES = np.random.default_rng(9).poisson(0.3, (5, 7, 12, 10)).astype("u2")
STORED = (2, 3, 12, 7)
SHARDS = (4, 3, 12, 14)


def own():
    """Options of arrays that are read without zarr, by name."""
    codecs = zarr.codecs
    compressors = {
        "plain": None,
        "zstd": codecs.ZstdCodec(level=2),
        "zstd with checksum": codecs.ZstdCodec(checksum=True),
        "gzip": codecs.GzipCodec(),
        "blosc": codecs.BloscCodec(cname="lz4", shuffle="bitshuffle"),
        "blosc zstd": codecs.BloscCodec(cname="zstd", typesize=2),
    }
    for name, compressor in compressors.items():
        yield f"3, {name}", {"zarr_format": 3, "compressors": compressor}
        yield f"3, {name}, shards", {"zarr_format": 3, "compressors": compressor, "shards": SHARDS}
    for compressor in (
        None,
        numcodecs.Zstd(),
        numcodecs.Blosc(),
        numcodecs.LZ4(),
        numcodecs.GZip(),
        numcodecs.Zlib(),
    ):
        yield f"2, {compressor}", {"zarr_format": 2, "compressors": compressor}
    yield "2, slashes", {"zarr_format": 2, "chunk_key_encoding": {"name": "v2", "separator": "/"}}


OWN = dict(own())


def write(path, values=VALUES, *, stored=STORED, **options):
    array = zarr.create_array(
        str(path), shape=values.shape, dtype=values.dtype, chunks=stored, overwrite=True, **options
    )
    array[:] = values
    return path


def computed(path, chunks=(3, 4, -1, -1)):
    return open_file(path, chunks=chunks).array.compute(scheduler="synchronous")


@pytest.fixture
def library_reads(monkeypatch):
    """The parts that zarr reads."""
    parts, read = [], zarr.Array.__getitem__

    def note(self, index):
        parts.append(index)
        return read(self, index)

    monkeypatch.setattr(zarr.Array, "__getitem__", note)
    return parts


def test_known_codecs(tmp_path, library_reads):
    for name, options in OWN.items():
        for number, dtype in enumerate(["<u2", "u1", "f4", ">i4"]):
            path = write(tmp_path / f"{name}-{number}.zarr", VALUES.astype(dtype), **options)
            found = computed(path)
            np.testing.assert_array_equal(found, VALUES, err_msg=name)
            assert found.dtype == open_file(path).array.dtype
            assert not library_reads, (name, dtype)


def test_a_store_in_the_other_byte_order(tmp_path, library_reads):
    serializer = zarr.codecs.BytesCodec(endian="big")
    np.testing.assert_array_equal(computed(write(tmp_path / "a", serializer=serializer)), VALUES)
    assert not library_reads
