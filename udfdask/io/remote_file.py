"""Read files on servers in byte ranges: raw files, and NumPy's .npy files."""

from __future__ import annotations

import math
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import numpy as np

from udfdask.errors import ArgumentValueError, FileFormatError
from udfdask.io.file_identity import COPY_AGAIN, check_values, reading
from udfdask.io.memmap import StridedArray, Values, c_strides, span
from udfdask.io.numpy_file import MAGIC
from udfdask.io.opened_file import OpenedFile, open_source
from udfdask.io.remote_location import REFERENCES, Location, reaching, reference_location
from udfdask.io.zarr_file import open_remote_zarr

_GAP = 1 << 16
"""Mean number of bytes between two parts up to which one request reads the bytes between them too.
fsspec has the same limit for references to parts of files."""

_MOST_HEADER = 1 << 14
"""Bytes that contain a whole header: NumPy reads at most 10,000 characters."""

_VERSIONS = ("ETag", "etag", "generation", "md5Hash", "LastModified", "last_modified", "mtime")
"""What file systems tell about the version of an object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteFile:
    """A file on a server."""

    location: Location
    """Where it is."""
    size: int
    """Size in bytes when it was opened."""
    version: tuple[str, ...]
    """What the server told about the version at that time; empty if nothing."""
    nonce: str
    """A random text if the server tells no version, otherwise empty."""

    @classmethod
    def of(cls, location: Location) -> RemoteFile:
        """Return the file at a location; raise if it does not exist or has no size."""
        fs, path = location.file_system()
        with reaching(location.shown):
            fs.invalidate_cache()  # no listing that was made before a change
            info = fs.info(path)
        if info.get("size") is None:
            raise FileFormatError(
                f"the server of {location.shown} does not tell the size of this file, so parts of "
                "it cannot be read: download the file, or put it on another server"
            )
        version = tuple(str(info[name]) for name in _VERSIONS if info.get(name))
        nonce = "" if version else uuid.uuid4().hex
        return cls(location=location, size=info["size"], version=version, nonce=nonce)

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        """Return the part on which names of arrays depend: not on options, such as passwords."""
        return (self.location.url, self.size, self.version, self.nonce)

    def lasting_identity(self) -> tuple[Any, ...] | None:
        """Return what names the data days later; None if the server tells no version."""
        return (self.location.url, self.size, self.version) if self.version else None

    def read(self, ranges: list[tuple[int, int]]) -> list[bytes]:
        """Return byte ranges, asked for at once: first bytes and numbers of bytes."""
        fs, path = self.location.file_system()
        starts = [first for first, _ in ranges]
        ends = [first + count for first, count in ranges]
        with reaching(self.location.shown, part=f"bytes from {min(starts, default=0)}"):
            parts: list[bytes] = fs.cat_ranges([path] * len(ranges), starts, ends, on_error="raise")
        for part, (_, size) in zip(parts, ranges, strict=True):
            if len(part) != size:  # such as the whole file
                raise FileFormatError(
                    f"the server of {self.location.shown} has sent {len(part)} bytes in place of "
                    f"the {size} that were asked for: download the file, or put it on a server "
                    "that sends parts of files"
                )
        return parts

    def begin(self, count: int) -> bytes:
        """Return the first bytes of the file; raise if the server cannot send parts of it."""
        fs, path = self.location.file_system()
        # An open file of HTTP never loads more than a block, and raises if the server does not send
        # parts, unless it reads from the beginning. `cat_file` would load the whole file.
        with reaching(self.location.shown), fs.open(path, "rb", cache_type="none") as stream:
            begin: bytes = stream.read(min(count, self.size))
            if self.size > 1:
                stream.seek(1)
                stream.read(1)
        return begin


@dataclass(frozen=True, slots=True, kw_only=True)
class RangedArray(StridedArray):
    """An array in a remote file; each task reads its own byte ranges."""

    file: RemoteFile
    """The file when it was opened."""

    def __getitem__(self, index: Any) -> Values:
        """Return the part at `index`, read-only."""
        return self.read_part(index, self.file.read, _is_one_read)


def _is_one_read(part: Values) -> bool:
    """Return whether one request for the whole span of a part is better than several."""
    run = part.itemsize
    for step, size in sorted(zip(map(abs, part.strides), part.shape, strict=True)):
        if size > 1 and step == run:
            run *= size
    return span(part) - part.nbytes <= _GAP * (part.nbytes // run - 1)


def open_remote(
    location: Location,
    *,
    options: Mapping[str, Any] | None,
    dataset: str | int | None,
    sig_dims: int | None,
    chunks: Any,
) -> OpenedFile:
    """Open a zarr store, references to parts of files, or a .npy file."""
    suffix = location.path.suffix.lower()
    how: dict[str, Any] = {"sig_dims": sig_dims, "chunks": chunks}
    if suffix in REFERENCES and "::" not in location.url:
        references = reference_location(location.url, options)
        return open_remote_zarr(references, dataset=dataset, **how)
    if suffix != ".npy":
        try:
            return open_remote_zarr(location, dataset=dataset, **how)
        except FileNotFoundError as error:
            if RemoteFile.of(location).begin(len(MAGIC)) != MAGIC:  # raises if there is no file
                raise FileFormatError(
                    f"{location.shown} is neither a zarr store nor a .npy file: download it; or "
                    "write references to its chunks (kerchunk, VirtualiZarr) and open these; or "
                    "pass nav_shape, sig_shape and dtype if it is a raw file"
                ) from error
    if dataset is not None:
        raise ArgumentValueError(
            f"dataset={dataset!r}: {location.shown} is a .npy file, which holds one array: leave "
            "out dataset"
        )
    return _open_npy(location, **how)


def _open_npy(location: Location, **how: Any) -> OpenedFile:
    """Open a .npy file; each task reads its own byte ranges."""
    file, shown = RemoteFile.of(location), location.shown
    begin = BytesIO(file.begin(_MOST_HEADER))
    with reading(shown, "a .npy file"):
        version = np.lib.format.read_magic(begin)[0]
        read_header = getattr(np.lib.format, f"read_array_header_{version}_0")
        shape, fortran_order, dtype = read_header(begin)
    check_values(shown, shape, dtype)
    if file.size < begin.tell() + math.prod(shape) * dtype.itemsize:
        raise FileFormatError(
            f"{shown} has {file.size} bytes, fewer than an array of shape {shape} and type {dtype} "
            f"needs. {COPY_AGAIN}"
        )
    order = -1 if fortran_order else 1
    source = RangedArray(
        file=file,
        shape=shape,
        dtype=dtype,
        offset=begin.tell(),
        strides=c_strides(shape[::order], dtype.itemsize)[::order],
    )
    reader = "NumPy, by byte ranges"
    return open_source(source, prefix="from-npy", reader=reader, title=location.path.stem, **how)
