"""Find the function that decodes the chunks of a file, so that no library has to be called for it.

All decoders work in several threads at once. They come from packages that the extra `io` installs
(imagecodecs, numcodecs), and from hdf5plugin if it is installed.
"""

from __future__ import annotations

import ctypes
import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

Bytes = np.ndarray[Any, Any]

Decode = Callable[[memoryview, Bytes], None]
"""Decode stored bytes into all of a contiguous array of bytes; raise if they do not fit exactly."""


class DamagedChunk(ValueError):
    """A chunk that nobody can decode: HDF5's zstd gives wrong values for it, bitshuffle crashes."""


DEFLATE, SHUFFLE, LZF, BLOSC, LZ4, BITSHUFFLE, ZSTD = 1, 2, 32000, 32001, 32004, 32008, 32015
"""Numbers that The HDF Group has given to filters of HDF5."""


_BIG_ENDIAN = struct.Struct(">I")
"""The size of a compressed block in bitshuffle's chunks."""

_FOOTER = struct.Struct("<II")
"""The end of a gzip chunk: checksum and size of the values."""

_ZSTD_MAGIC = 0xFD2FB528
"""First bytes of a zstd frame."""

_SNAPPY = 2
"""Number of the compressor snappy in the third byte of a blosc chunk."""


def hdf5_decoder(filters: Sequence[tuple[int, tuple[int, ...]]]) -> Decode | None:
    """Return the decoder for a pipeline of HDF5's filters, each a number with its parameters.

    It is None if only HDF5 can undo the pipeline, for example because it contains a checksum.
    """
    width = 0
    if len(filters) == 2 and filters[0][0] == SHUFFLE:
        width = filters[0][1][0]
        filters = filters[1:]
    if len(filters) != 1:
        return None
    number, parameters = filters[0]
    decode: Decode | None = None
    if number == DEFLATE:
        decode = _imagecodec("deflate_decode") or _inflate
    elif number == LZF:
        decode = _imagecodec("lzf_decode")
    elif number == LZ4:
        decode = _imagecodec("lz4h5_decode")
    elif number in (BLOSC, ZSTD):
        decode = numcodec({"id": "blosc" if number == BLOSC else "zstd"})
    elif number == BITSHUFFLE and len(parameters) >= 5:
        decode = _bitshuffle(parameters[2], {2: "lz4", 3: "zstd"}.get(parameters[4], ""))
    return _unshuffled(decode, width) if decode and width > 1 else decode


def numcodec(config: Mapping[str, Any]) -> Decode | None:
    """Return the decoder for a compressor of numcodecs; None if udfdask does not know it."""
    name = config.get("id", "")
    if name == "gzip":
        return _gunzip_faster() or _gunzip
    if name == "zlib":
        return _imagecodec("deflate_decode") or _inflate
    if name not in ("blosc", "lz4", "zstd"):
        return None
    try:
        import numcodecs
    except ImportError:
        return None
    codec = numcodecs.get_codec(dict(config))

    def decode(stored: memoryview, out: Bytes) -> None:
        # The decoders would also fill a part, and blosc does not know the size of its input.
        _check(_stated_size(name, stored), out)
        if name == "blosc" and int.from_bytes(stored[12:16], "little") != len(stored):
            raise ValueError("the chunk is cut short")
        if name == "blosc" and stored[2] >> 5 == _SNAPPY:
            raise ValueError("numcodecs is built without snappy, which HDF5's filter can have")
        try:
            codec.decode(stored, out=out)
        except RuntimeError as error:
            raise DamagedChunk(str(error)) from error

    return decode


def _stated_size(compressor: str, stored: memoryview) -> int | None:
    """Return the decoded size in the header of a chunk; None if it contains no size."""
    try:
        if compressor == "blosc":
            return int(struct.unpack_from("<I", stored, 4)[0])
        if compressor == "lz4":
            return int(struct.unpack_from("<I", stored)[0])
        return _zstd_size(stored)
    except (struct.error, IndexError):  # too short for a header
        return None


def _zstd_size(stored: memoryview) -> int | None:
    """Return the content size in the header of a zstd frame (RFC 8878, 3.1.1.1), if any."""
    magic, descriptor = struct.unpack_from("<IB", stored)
    single = descriptor >> 5 & 1
    width = (single, 2, 4, 8)[descriptor >> 6]
    if magic != _ZSTD_MAGIC or width == 0:
        return None
    start = 5 + (not single) + (0, 1, 2, 4)[descriptor & 3]
    field = stored[start : start + width]
    return int.from_bytes(field, "little") + (256 if width == 2 else 0)


def _check(size: int | None, out: Bytes) -> None:
    """Raise if the size of decoded data is not the size of the chunk."""
    if size != out.nbytes:
        raise ValueError(f"the decoded chunk has {size} bytes, expected {out.nbytes}")


def _imagecodec(name: str) -> Decode | None:
    """Return a decoder of imagecodecs; None if it is not there.

    For deflate it uses libdeflate: 1.4 ms for 2 MiB of detector counts, zlib 4.1 ms.
    """
    try:
        import imagecodecs

        function = getattr(imagecodecs, name)
    except (ImportError, AttributeError):
        return None

    def decode(stored: memoryview, out: Bytes) -> None:
        try:
            decoded = function(stored, out=out)
        except imagecodecs.DelayedImportError as error:  # built without this codec
            raise ValueError(str(error)) from error
        _check(decoded.nbytes, out)

    return decode


def _inflate(stored: memoryview, out: Bytes, wbits: int = zlib.MAX_WBITS) -> None:
    inflating = zlib.decompressobj(wbits)
    decoded = inflating.decompress(stored, out.nbytes + 1)  # one byte more, to reach the end
    _check(len(decoded) if inflating.eof else None, out)
    out[:] = np.frombuffer(decoded, np.uint8)


def _gunzip(stored: memoryview, out: Bytes) -> None:
    _inflate(stored, out, zlib.MAX_WBITS | 16)
    _check_end(stored, out, zlib.crc32)


def _gunzip_faster() -> Decode | None:
    """Return the decoder of libdeflate for gzip; None if it is not there."""
    decode_first = _imagecodec("gzip_decode")
    try:
        from imagecodecs import deflate_crc32
    except ImportError:
        return None
    if decode_first is None:
        return None

    def decode(stored: memoryview, out: Bytes) -> None:
        decode_first(stored, out)
        _check_end(stored, out, deflate_crc32)

    return decode


def _check_end(stored: memoryview, out: Bytes, crc32: Callable[..., int]) -> None:
    """Raise if a gzip chunk does not end with the checksum and the size of the decoded values.

    Decoders stop after the first part, and ignore the rest of a longer chunk in the same file.
    """
    if _FOOTER.unpack_from(stored, len(stored) - 8) != (crc32(out), out.nbytes % 2**32):
        raise ValueError("the chunk has other bytes after the first part")


def _unshuffled(decode: Decode, width: int) -> Decode:
    """Return a decoder that also undoes HDF5's shuffling of the bytes of values.

    A shuffled chunk contains the first bytes of all values, then all second bytes.
    """

    def decode_and_unshuffle(stored: memoryview, out: Bytes) -> None:
        planes = np.empty((width, out.nbytes // width), np.uint8)
        decode(stored, planes.reshape(-1))
        values = out.reshape(-1, width)
        for byte, plane in enumerate(planes):  # one transposed copy takes six times as long
            values[:, byte] = plane

    return decode_and_unshuffle


@cache
def _bitshuffle_library() -> Any:
    """Return the library of bitshuffle that hdf5plugin contains; None if it is not there."""
    try:
        import hdf5plugin

        path = next(Path(hdf5plugin.PLUGIN_PATH).glob("libh5bshuf.*"))
        return ctypes.CDLL(str(path))
    except (ImportError, StopIteration, OSError):
        return None


def _bitshuffle(width: int, compressor: str) -> Decode | None:
    """Return the decoder of bitshuffle with a compressor, for values of a number of bytes."""
    function = getattr(_bitshuffle_library(), f"bshuf_decompress_{compressor}", None)
    if function is None or width < 1:
        return None
    function.argtypes = [ctypes.c_void_p, ctypes.c_void_p, *[ctypes.c_size_t] * 3]
    function.restype = ctypes.c_int64

    def decode(stored: memoryview, out: Bytes) -> None:
        # a header of 12 bytes, big-endian: the decoded size, and the size of a block
        _check(int.from_bytes(stored[:8], "big"), out)
        block = int.from_bytes(stored[8:12], "big") // width
        _check_blocks(stored, out.nbytes // width, width, block)
        blocks = np.frombuffer(stored, np.uint8, offset=12)
        used = function(blocks.ctypes.data, out.ctypes.data, out.nbytes // width, width, block)
        if used != blocks.nbytes:
            raise DamagedChunk(f"bitshuffle returned {used}, expected {blocks.nbytes}")

    return decode


def _check_blocks(stored: memoryview, values: int, width: int, block: int) -> None:
    """Raise if the sizes of bitshuffle's blocks do not add up: its library would read beyond."""
    if block < 8 or block % 8:
        raise DamagedChunk(f"blocks of {block} values")
    at = 12
    # the last values, less than 8, are stored as they are
    try:
        for _ in range(-(-(values // 8 * 8) // block)):
            at += 4 + _BIG_ENDIAN.unpack_from(stored, at)[0]
    except struct.error as error:
        raise DamagedChunk(f"a block begins at byte {at} of {len(stored)}") from error
    if at + values % 8 * width != len(stored):
        raise DamagedChunk(f"the blocks end at byte {at} of {len(stored)}")
