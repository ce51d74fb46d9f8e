"""Check that an instrument's file is complete: HyperSpy's readers ignore missing parts."""

from __future__ import annotations

import math
import struct
from pathlib import Path
from typing import Any

import numpy as np

from udfdask.errors import FileFormatError
from udfdask.io.damaged_files import COPY_AGAIN, reading

_SFS_START = 0x118
"""Size in bytes of the header of an SFS container, the file system inside a .bcf file."""

_TREE_ITEM = struct.Struct("<iQ24x4xi")
"""Pointer, size and parent of a file in the container: the start of an entry of 512 bytes."""

_BLO_MAGIC = b"\x02\x01"

_MOST_COMPRESSED = 2000
"""Maximum ratio of an image to its compressed file: deflate compresses at most by 1032."""


def check_before(file: Path) -> None:
    """Raise if a file is damaged in a way in which HyperSpy's reader would hang or crash."""
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
                f"{file} cannot be read as a block file: expected {_BLO_MAGIC!r} at byte 6, got "
                f"{begin[6:]!r}. {COPY_AGAIN}"
            )


def _check_tiff(file: Path) -> None:
    """Raise if a TIFF file is not complete.

    tifffile only logs that pages are missing. If a size is damaged, HyperSpy allocates the
    positions along an axis before it reads anything, for example a billion positions.
    """
    try:
        import tifffile
    except ImportError:  # HyperSpy will raise an error that says what to install
        return
    with reading(file, "TIFF"), tifffile.TiffFile(file) as opened:
        images = [(s.shape, s.nbytes, s.keyframe.compression) for s in opened.series]
        n_values = sum(series.size for series in opened.series)
        n_pages = len(opened.pages)
        announced = sum(math.prod(each["shape"]) for each in opened.shaped_metadata or ())
        end_of_list = opened.pages.next_page_offset
        assert end_of_list is not None  # after the length has been asked for
        opened.filehandle.seek(end_of_list)
        pointer = opened.filehandle.read(opened.tiff.offsetsize)
        (next_page,) = struct.unpack(opened.tiff.offsetformat, pointer)
    size = file.stat().st_size
    faults = [
        f"an image of shape {shape} needs {nbytes} bytes"
        for shape, nbytes, compression in images
        if nbytes > size * (1 if compression == 1 else _MOST_COMPRESSED)
    ]
    if next_page:
        faults.append(f"it says that pages follow after the first {n_pages}")
    if announced > n_values:
        faults.append(f"it announces {announced} values and has {n_values}")
    if faults:
        raise FileFormatError(
            f"{file} has {size} bytes and is not complete: {faults[0]}. {COPY_AGAIN}"
        )


def check_after(file: Path, signal: Any, shape: tuple[int, ...]) -> None:
    """Raise if a file is shorter than its header says; `signal` is HyperSpy's, of this shape."""
    header = signal.original_metadata.as_dictionary()
    suffix = file.suffix.lower()
    if suffix == ".mib" and "mib_properties" in header:
        _check_mib(file, header, shape)
    if suffix == ".blo" and "blockfile_header" in header:
        _check_blo(file, header["blockfile_header"])
    if suffix == ".xml" and "raw_file" in header.get("root", {}):
        _check_empad(file, header["root"]["raw_file"]["filename"], shape)


def _check_mib(file: Path, header: dict[str, Any], shape: tuple[int, ...]) -> None:
    """Raise if a Merlin file does not contain exactly the frames of its header."""
    properties = header["mib_properties"]
    with reading(file, "Merlin's .mib"):
        values = math.prod(int(size) for size in properties["merlin_size"])
        frame = properties["head_size"] + values * np.dtype(properties["dtype"]).itemsize
        frames, rest = divmod(file.stat().st_size, frame)
        # 0 for a continuous acquisition
        announced = int(header.get("hdr_file", {}).get("Frames in Acquisition (Number)", 0))
    in_scan = math.prod(shape[:-2])
    if rest == 0 and frames == (announced or frames) and in_scan == frames:
        return
    hdr = file.with_suffix(".hdr").name
    raise FileFormatError(
        f"{file} contains {frames} frames of {frame} bytes"
        + (f" and {rest} bytes of another one" if rest else "")
        + (f", {hdr} announces {announced}" if announced else "")
        + f", and HyperSpy makes a scan of {in_scan} frames: the file is not complete, or the "
        "acquisition was interrupted. Copy it again; to use the existing frames, load them with "
        "hyperspy.api.load(path, lazy=True, navigation_shape=(x, y)) and run on its data"
    )


def _check_blo(file: Path, header: dict[str, Any]) -> None:
    """Raise if a block file ends before its last frame."""
    with reading(file, "a block file"):
        frames = int(header["NX"]) * int(header["NY"])
        expected = int(header["Data_offset_2"]) + frames * (6 + int(header["DP_SZ"]) ** 2)
    size = file.stat().st_size
    if size < expected:
        raise FileFormatError(
            f"{file} has {size} bytes, but its header requires {expected}: {frames} frames of "
            f"{header['DP_SZ']} x {header['DP_SZ']}. {COPY_AGAIN}"
        )


def _check_empad(file: Path, name: str, shape: tuple[int, ...]) -> None:
    """Raise if the frames of a description by EMPAD are missing, or not all there."""
    raw = file.parent / name
    if not raw.is_file():
        raise FileFormatError(
            f"{file} describes the frames in {name}, which is not next to it: put it there"
        )
    # each frame has 2 rows of 128 values of 4 bytes after its own
    size, expected = raw.stat().st_size, math.prod(shape[:-2]) * 130 * 128 * 4
    if size < expected:
        raise FileFormatError(
            f"{raw} has {size} bytes, but {file.name} describes {expected}. {COPY_AGAIN}"
        )


def _check_bcf(file: Path) -> None:
    """Raise if the table of files in a .bcf file is damaged; the reader would loop forever."""
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
                f"{file} has {size} bytes, but its header requires {_SFS_START + block * blocks}. "
                f"{COPY_AGAIN}"
            )
        entries: list[tuple[int, int]] = []
        for _ in range(math.ceil(items * 512 / (block - 32)) if items * 512 <= size else 0):
            stream.seek(_SFS_START + block * tree)
            (tree,) = struct.unpack("<I28x", stream.read(32))
            table = stream.read((block - 32) // 512 * 512)
            entries += [_TREE_ITEM.unpack_from(table, n)[1:] for n in range(0, len(table), 512)]
    parents = [parent for _, parent in entries[:items]]
    if len(parents) < items or any(length > size for length, _ in entries[:items]):
        raise FileFormatError(f"{file} has a damaged table of files. {COPY_AGAIN}")
    for parent in parents:
        steps = 0
        while parent != -1:
            steps += 1
            if steps > items or not 0 <= parent < items:
                raise FileFormatError(f"{file} has a damaged table of files. {COPY_AGAIN}")
            parent = parents[parent]  # noqa: PLW2901  # up the tree
