"""Find frames in files of instruments, so that tasks read them instead of calling HyperSpy.

HyperSpy's lazy chunks contain parts of all frames of a .mib file, and all frames of a TIFF file.
For a chunk of a .blo file, they need several times its memory.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np

from udfdask.io.damaged_files import reading
from udfdask.io.file_identity import FileIdentity
from udfdask.io.lazy_source import FileArray
from udfdask.io.memmap import MappedArray, c_strides


def frames_in(
    file: Path,
    signal: Any,
    array: da.Array,
    identities: tuple[FileIdentity, ...],
    *,
    number: int,
) -> FileArray | None:
    """Return HyperSpy's lazy array as frames of its file; None if HyperSpy has to read them."""
    suffix, identity = file.suffix.lower(), identities[0]
    if 0 in array.shape:
        return None
    if suffix == ".mib" and array.ndim >= 3:
        return _mib_frames(array, file, identity)
    if suffix == ".blo":
        return _blo_frames(signal, array, identity)
    if suffix == ".xml" and len(identities) == 2:
        return _empad_frames(array, identities[1])
    if suffix in (".tif", ".tiff"):
        return _tiff_frames(array, file, identity, number)
    return None


def _blo_frames(signal: Any, array: da.Array, identity: FileIdentity) -> MappedArray | None:
    """Return the frames of a block file, each of them after 6 bytes with its number."""
    header = signal.original_metadata.as_dictionary().get("blockfile_header", {})
    size = int(header.get("DP_SZ", 0))
    if array.shape[-2:] != (size, size):
        return None
    return MappedArray(
        file=identity,
        shape=array.shape,
        dtype=array.dtype,
        offset=int(header["Data_offset_2"]) + 6,
        strides=(*c_strides(array.shape[:-2], 6 + size**2), size, 1),
    )


def _empad_frames(array: da.Array, raw: FileIdentity) -> MappedArray | None:
    """Return the frames of an EMPAD: 130 rows of 128 values, of which the last 2 are no pixels."""
    if array.shape[-2:] != (128, 128) or array.dtype != np.float32:
        return None
    return MappedArray(
        file=raw,
        shape=array.shape,
        dtype=array.dtype,
        offset=0,
        strides=(*c_strides(array.shape[:-2], 130 * 128 * 4), 128 * 4, 4),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TiffPages(FileArray):
    """A series of pages in a TIFF file, of which each task decodes those that it needs."""

    series: int
    """Number of the series in the file."""
    page: tuple[int, ...]
    """Shape of a page."""

    def __getitem__(self, index: Any) -> np.ndarray[Any, Any]:
        """Return the part at `index`, decoded by tifffile."""
        import tifffile

        nav = self.ndim - len(self.page)
        pages = np.arange(math.prod(self.shape[:nav])).reshape(self.shape[:nav])[index[:nav]]
        where = f"at {index}"
        with self.file.unchanged(), reading(self.file.path, "TIFF", part=where):
            # dask runs the tasks in parallel
            values = tifffile.imread(
                self.file.path, key=pages.ravel().tolist(), series=self.series, maxworkers=1
            )
            frames = values.reshape(*pages.shape, *self.page)
        part: np.ndarray[Any, Any] = frames[(*[slice(None)] * pages.ndim, *index[nav:])]
        return part


def _tiff_frames(
    array: da.Array, file: Path, identity: FileIdentity, number: int
) -> FileArray | None:
    """Return the frames of a series of a TIFF file: mapped if they are not compressed."""
    import tifffile

    with reading(file, "TIFF"), tifffile.TiffFile(file) as opened:
        series = opened.series[number]
        page = tuple(size for size in series.keyframe.shape if size > 1)
        nav = array.ndim - len(page)
        if series.shape != array.shape or series.dtype != array.dtype or series.size == 0:
            return None
        if series.dataoffset is not None:
            dtype = array.dtype.newbyteorder(opened.byteorder)
            return MappedArray(
                file=identity,
                shape=array.shape,
                dtype=dtype,
                offset=series.dataoffset,
                strides=c_strides(array.shape, dtype.itemsize),
            )
        if nav < 0 or array.shape[nav:] != page or math.prod(array.shape[:nav]) != len(series):
            return None
    return TiffPages(file=identity, shape=array.shape, dtype=array.dtype, series=number, page=page)


def _mib_frames(array: da.Array, file: Path, identity: FileIdentity) -> MappedArray | None:
    """Return the frames of a .mib file; None if HyperSpy has another order of frames."""
    try:
        from rsciio.quantumdetector import load_mib_data
    except ImportError:  # RosettaSciIO before 0.2
        return None
    with reading(file, "a .mib file"):
        frames = load_mib_data(str(file), lazy=True)
    whole = frames
    while isinstance(whole.base, np.ndarray):
        whole = whole.base
    *nav, rows, columns = array.shape
    count = math.prod(nav)
    if frames.dtype != array.dtype or frames.shape[1:] != (rows, columns) or len(frames) < count:
        return None
    step, row, column = frames.strides
    # HyperSpy turns frames upside down, because the detector has its first row at the bottom
    last_row = (rows - 1) * row
    mapped = MappedArray(
        file=identity,
        shape=array.shape,
        dtype=array.dtype,
        offset=whole.offset + _address(frames) - _address(whole) + last_row,
        strides=(*c_strides(tuple(nav), step), -row, column),
    )
    ends = ((0,) * len(nav), (-1,) * len(nav))
    equal = all(np.array_equal(mapped[end], array[end].compute(scheduler="sync")) for end in ends)
    return mapped if equal else None


def _address(values: Any) -> int:
    """Return the position of the first value of an array in memory."""
    address: int = values.__array_interface__["data"][0]
    return address
