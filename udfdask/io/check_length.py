"""Whether an instrument's file is as long as its header says: readers pass over what is missing."""

from __future__ import annotations

import logging
import math
import struct
from pathlib import Path
from typing import Any

from udfdask.errors import FileFormatError
from udfdask.io.damaged_files import COPY_AGAIN, reading

_SFS_START = 0x118
"""Bytes before the first block of an SFS container, the file system inside a .bcf file."""

_TREE_ITEM = struct.Struct("<iQ24x4xi")
"""Pointer, size and parent of a file in it, which has 512 bytes for them."""

_BLO_MAGIC = b"\x02\x01"


_MOST_PACKED = 2000
"""How often a packed image may fit into its file: deflate makes at most 1032 bytes of one."""


def check_before(file: Path) -> None:
    """Take a file that HyperSpy will open; raise if its reader would not come back from it."""
    suffix = file.suffix.lower()
    if suffix == ".bcf":
        with reading(file, "Bruker's .bcf"):
            _check_bcf(file)
    if suffix in (".tif", ".tiff"):
        _check_tiff(file)
    if suffix == ".blo":
        with reading(file, "a block file"), file.open("rb") as stream:
            begin = stream.read(8)
        if begin[6:] != _BLO_MAGIC:
            raise FileFormatError(
                f"{file} cannot be read as a block file, which has {_BLO_MAGIC!r} at byte 6, not "
                f"{begin[6:]!r}. {COPY_AGAIN}"
            )


def _check_tiff(file: Path) -> None:
    """Take a TIFF file; raise if it holds less than it says.

    Of pages that are missing tifffile only logs, and HyperSpy makes positions of each axis first,
    a billion of them where a size is damaged.
    """
    try:
        import tifffile
    except ImportError:  # the error that follows says what to install
        return
    said: list[str] = []
    handler = _Collector(said)
    logger = logging.getLogger("tifffile")
    logger.addHandler(handler)
    try:
        with reading(file, "TIFF"), tifffile.TiffFile(file) as opened:
            held = [(s.shape, s.nbytes, s.keyframe.compression) for s in opened.series]
    finally:
        logger.removeHandler(handler)
    lost = [words for words in said if "invalid page offset" in words or "series" in words]
    size = file.stat().st_size
    for shape, nbytes, compression in held:
        room = size * (1 if compression == 1 else _MOST_PACKED)
        if nbytes > room:
            lost.append(f"an image of shape {shape} needs {nbytes} bytes")
    if lost:
        raise FileFormatError(
            f"{file} has {size} bytes, and is not complete: {lost[0]}. {COPY_AGAIN}"
        )


class _Collector(logging.Handler):
    """Collects what is logged as an error."""

    def __init__(self, said: list[str]) -> None:
        super().__init__(logging.ERROR)
        self.said = said

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the message of a record."""
        self.said.append(record.getMessage())


def check_after(file: Path, signal: Any, shape: tuple[int, ...]) -> None:
    """Take a file and a signal that HyperSpy found in it; raise if the file held more once."""
    header = signal.original_metadata.as_dictionary()
    suffix = file.suffix.lower()
    if suffix == ".mib" and "mib_properties" in header:
        _check_mib(file, header, shape)
    if suffix == ".blo" and "blockfile_header" in header:
        _check_blo(file, header["blockfile_header"])


def _check_mib(file: Path, header: dict[str, Any], shape: tuple[int, ...]) -> None:
    """Take a Merlin file and its headers; raise if it does not hold all frames, and only whole."""
    properties = header["mib_properties"]
    with reading(file, "Merlin's .mib"):
        values = math.prod(int(size) for size in properties["merlin_size"])
        frame = properties["head_size"] + values * _itemsize(properties["dtype"])
        frames, rest = divmod(file.stat().st_size, frame)
        told = int(header.get("hdr_file", {}).get("Frames in Acquisition (Number)", 0))
    read = math.prod(shape[:-2])
    if rest == 0 and frames == (told or frames) and read == frames:
        return
    hdr = file.with_suffix(".hdr").name
    raise FileFormatError(
        f"{file} holds {frames} frames of {frame} bytes"
        + (f" and {rest} bytes of another one" if rest else "")
        + (f", {hdr} tells of {told}" if told else "")
        + f", and HyperSpy makes a scan of {read} of them: the file is not complete, or the "
        "acquisition was interrupted. Copy it again; to use the frames that are there, load them "
        "with hyperspy.api.load(path, lazy=True, navigation_shape=(x, y)) and run on its data"
    )


def _itemsize(dtype: str) -> int:
    """Take a NumPy type's name; return the bytes of a value."""
    import numpy as np

    return np.dtype(dtype).itemsize


def _check_blo(file: Path, header: dict[str, Any]) -> None:
    """Take a block file and its header; raise if it ends before the last frame."""
    with reading(file, "a block file"):
        frames = int(header["NX"]) * int(header["NY"])
        wanted = int(header["Data_offset_2"]) + frames * (6 + int(header["DP_SZ"]) ** 2)
    size = file.stat().st_size
    if size < wanted:
        raise FileFormatError(
            f"{file} has {size} bytes, and its header asks for {wanted}: {frames} frames of "
            f"{header['DP_SZ']} x {header['DP_SZ']}. {COPY_AGAIN}"
        )


def _check_bcf(file: Path) -> None:
    """Take a .bcf file; raise if its table of files is damaged: the reader would follow it."""
    size = file.stat().st_size
    with file.open("rb") as stream:
        signature = stream.read(8)
        stream.seek(0x128)
        (block,) = struct.unpack("<I", stream.read(4))
        stream.seek(0x140)
        tree, items, blocks = struct.unpack("<III", stream.read(12))
        if signature != b"AAMVHFSS":
            raise FileFormatError(f"{file} does not begin as a .bcf file does. {COPY_AGAIN}")
        if size != _SFS_START + block * blocks or block <= 544:
            raise FileFormatError(
                f"{file} has {size} bytes, and its header asks for {_SFS_START + block * blocks}. "
                f"{COPY_AGAIN}"
            )
        found: list[tuple[int, int]] = []
        for _ in range(math.ceil(items * 512 / (block - 32)) if items * 512 <= size else 0):
            stream.seek(_SFS_START + block * tree)
            (tree,) = struct.unpack("<I28x", stream.read(32))
            table = stream.read((block - 32) // 512 * 512)
            found += [_TREE_ITEM.unpack_from(table, n)[1:] for n in range(0, len(table), 512)]
    parents = [parent for _, parent in found[:items]]
    if len(parents) < items or any(length > size for length, _ in found[:items]):
        raise FileFormatError(f"{file} has a damaged table of files. {COPY_AGAIN}")
    for parent in parents:
        steps = 0
        while parent != -1:
            steps += 1
            if steps > items or not 0 <= parent < items:
                raise FileFormatError(f"{file} has a damaged table of files. {COPY_AGAIN}")
            parent = parents[parent]  # noqa: PLW2901  # up the tree
