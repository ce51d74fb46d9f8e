"""Find the function that decodes the chunks of a file, so that no library has to be called for it.

All decoders work in several threads at once. They come from imagecodecs, which the extra `io`
installs, and from hdf5plugin if it is installed.
"""

from __future__ import annotations

import ctypes
import zlib
from collections.abc import Callable, Sequence
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

_HDF5_FILTERS = {DEFLATE: "zlib", LZF: "lzf", LZ4: "lz4h5", BLOSC: "blosc", ZSTD: "zstd"}


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
    if number == BITSHUFFLE and len(parameters) >= 5:
        decode = _bitshuffle(parameters[2], {2: "lz4", 3: "zstd"}.get(parameters[4], ""))
    else:
        decode = decoder(_HDF5_FILTERS.get(number, ""))
    return _unshuffled(decode, width) if decode and width > 1 else decode


def decoder(name: str) -> Decode | None:
    """Return the decoder of a compressor, by its name in zarr; None if udfdask does not know it.

    libdeflate of imagecodecs decodes 2 MiB of detector counts in 1.4 ms, zlib in 4.1 ms.
    """
    functions = {
        "blosc": ("blosc_decode", {}),
        "gzip": ("gzip_decode", {}),
        "lz4": ("lz4_decode", {"header": True}),
        "lz4h5": ("lz4h5_decode", {}),
        "lzf": ("lzf_decode", {}),
        "zlib": ("deflate_decode", {}),
        "zstd": ("zstd_decode", {}),
    }
    if name not in functions:
        return None
    function, options = functions[name]
    try:
        import imagecodecs

        codec = getattr(imagecodecs, function)
    except (ImportError, AttributeError):
        return _inflate if name in ("gzip", "zlib") else None

    def decode(stored: memoryview, out: Bytes) -> None:
        # the decoder of blosc does not look where its input ends
        if name == "blosc" and stored[12:16] != len(stored).to_bytes(4, "little"):
            raise ValueError("the chunk is cut short")
        try:
            size = codec(stored, out=out, **options).nbytes
        except RuntimeError as error:
            raise DamagedChunk(str(error)) from error
        _check(size, out)

    return decode


def _check(size: int | None, out: Bytes) -> None:
    """Raise if the size of decoded data is not the size of the chunk."""
    if size != out.nbytes:
        raise ValueError(f"the decoded chunk has {size} bytes, expected {out.nbytes}")


def _inflate(stored: memoryview, out: Bytes) -> None:
    inflating = zlib.decompressobj(zlib.MAX_WBITS | 32)  # zlib and gzip
    decoded = inflating.decompress(stored, out.nbytes + 1)  # one byte more, to reach the end
    _check(len(decoded) if inflating.eof else None, out)
    out[:] = np.frombuffer(decoded, np.uint8)


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
        blocks = np.frombuffer(stored, np.uint8, offset=12)
        values = out.nbytes // width
        if not _blocks_add_up(stored, values, width, block) or blocks.nbytes != function(
            blocks.ctypes.data, out.ctypes.data, values, width, block
        ):
            raise DamagedChunk("bitshuffle cannot decode it")

    return decode


def _blocks_add_up(stored: memoryview, values: int, width: int, block: int) -> bool:
    """Return whether the sizes of bitshuffle's blocks add up: its library would read beyond."""
    if block < 8 or block % 8:
        return False
    at = 12
    for _ in range(-(-(values // 8 * 8) // block)):
        at += 4 + int.from_bytes(stored[at : at + 4], "big")
    return at + values % 8 * width == len(stored)  # the last values, less than 8, are as they are
