"""Read the size of the decompressed chunk from the header of a compressed one."""

from __future__ import annotations

import struct

_ZSTD_MAGIC = 0xFD2FB528


def decompressed_size(compressor: str, stored: memoryview) -> int | None:
    """Return the decompressed size in the header of a chunk; None if it contains no size.

    The size of gzip is modulo 4 GiB and of the last part; zlib, bz2 and lzma have none.
    """
    try:
        if compressor == "blosc":
            return int(struct.unpack_from("<I", stored, 4)[0])
        if compressor == "lz4":
            return int(struct.unpack_from("<I", stored)[0])
        if compressor == "gzip":
            return int(struct.unpack_from("<I", stored, len(stored) - 4)[0])
        return _zstd_size(stored) if compressor == "zstd" else None
    except (struct.error, IndexError):  # too short for a header: the decompressor will raise
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
