"""Read data on servers: URLs with the options of their file system, and files in byte ranges."""

from __future__ import annotations

import math
import re
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import PurePosixPath
from typing import Any, TypeGuard

import numpy as np

from udfdask.errors import ArgumentValueError, FileFormatError, UDFError, without_secrets
from udfdask.io.file_identity import COPY_AGAIN, check_values, in_words, reading
from udfdask.io.lazy_source import Values
from udfdask.io.memmap import StridedArray, c_strides
from udfdask.io.opened_file import OpenedFile, open_source

REFERENCES = (".json", ".parquet", ".parq")  # suffixes

# what file systems tell about the version of an object
_VERSIONS = ("ETag", "etag", "generation", "md5Hash", "LastModified", "last_modified", "mtime")


def is_remote(path: Any) -> TypeGuard[str]:
    """Return whether a user's path is a URL, but not that of a file on this machine."""
    return isinstance(path, str) and "://" in path and local_path(path) == path


def local_path(path: Any) -> Any:
    """Return the path in a URL such as ``file:///data/scan.npy``; anything else as it is."""
    if not isinstance(path, str) or "::" in path or not path.startswith(("file://", "local://")):
        return path
    from fsspec.core import strip_protocol

    return strip_protocol(path)


def plain_path(path: Any, options: Mapping[str, Any] | None) -> Any:
    """Return the path of a file on this machine; raise if there are options for it."""
    if options:
        raise ArgumentValueError(
            f"storage_options are for URLs such as s3://bucket/scan.zarr, but {path} is a file on "
            "this machine: leave them out"
        )
    return local_path(path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """A URL, as the user wrote it, with the options of its file system: perhaps passwords."""

    url: str
    options: dict[str, Any] = field(default_factory=dict, repr=False, hash=False)

    @property
    def shown(self) -> str:
        """The URL for messages: without a password, and without a signature in its query."""
        return without_secrets(self.url)

    @property
    def path(self) -> PurePosixPath:
        """The path in the first part of the URL that has one, with the bucket or host."""
        parts = [part for part in self.url.split("::") if re.search("://.", part)]
        protocol, _, rest = (parts[0] if parts else "://references").partition("://")
        return PurePosixPath(re.split("[?#]", rest)[0] if protocol.startswith("http") else rest)

    def file_system(self) -> tuple[Any, str]:
        """Return the file system, which fsspec makes once per process, and the path in it."""
        import fsspec

        with reaching(self.shown):
            fs, path = fsspec.url_to_fs(self.url, **self.options)
        return fs, path.rstrip("/")


def reference_location(url: str, options: Mapping[str, Any] | None) -> Location:
    """Return the location of the zarr store that the references at a URL describe.

    `options` are those of fsspec's file system for references, such as `target_options` and
    `remote_options`. Any others are for the file with the references and for the data.
    """
    given = dict(options or {})
    if not any(name.startswith(("target_", "remote_", "template_", "fs")) for name in given):
        given = {"target_options": given, "remote_options": given}
    if not url.endswith(".json") and not {"fs", "remote_protocol"}.intersection(given):
        raise ArgumentValueError(
            "references in parquet do not say the protocol of the data: pass for example "
            'storage_options={"remote_protocol": "https"}, or "file"'
        )
    target = given.pop("target_options", {})
    return Location(url=f"reference::{url}", options={url.partition("://")[0]: target, **given})


@contextmanager
def reaching(shown: str, *, part: str = "") -> Iterator[None]:
    """Turn errors about remote data into errors that name the location.

    FileNotFoundError: there is no such object. ImportError: a package is missing. ConnectionError:
    the server cannot be reached. FileFormatError: anything else, such as a damaged chunk.
    """
    try:
        yield
    except (UDFError, MemoryError, Warning):
        raise
    except ImportError as error:
        raise ImportError(
            f'reading {shown} needs a package: {error}; pip install "udfdask[remote]"',
            name=error.name,
        ) from error
    except Exception as error:  # file systems and decoders have no common base class of errors
        first: BaseException = error
        while first.__cause__ or first.__context__:
            first = first.__cause__ or first.__context__ or first
        words = "; ".join(dict.fromkeys(without_secrets(in_words(e)) for e in (error, first)))
        kind: type[Exception] = FileFormatError
        answers = (FileNotFoundError, PermissionError)
        if any(isinstance(e, OSError) and not isinstance(e, answers) for e in (error, first)):
            kind = ConnectionError
        # the file system of HTTP raises FileNotFoundError for all errors
        elif isinstance(error, FileNotFoundError) and getattr(first, "status", 404) == 404:
            kind = FileNotFoundError
        raise kind(
            f"{shown}{f', {part},' if part else ''} cannot be read ({words}): check the URL, the "
            'network, the credentials in storage_options ({"anon": True} for public data), and '
            "whether the data are complete"
        ) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteFile:
    """A file on a server: size and version; if the server tells none, `nonce` is random."""

    location: Location
    size: int
    version: tuple[str, ...]
    nonce: str

    @classmethod
    def of(cls, location: Location) -> RemoteFile:
        """Return the file at a location; raise if it does not exist or has no size."""
        fs, path = location.file_system()
        with reaching(location.shown):
            fs.invalidate_cache()  # no listing that was made before a change
            info = fs.info(path)
            size = int(info["size"])
        version = tuple(str(info[name]) for name in _VERSIONS if info.get(name))
        nonce = "" if version else uuid.uuid4().hex
        return cls(location=location, size=size, version=version, nonce=nonce)

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
                    f"the {size} that were asked for: it does not send parts of files. Download it"
                )
        return parts


@dataclass(frozen=True, slots=True, kw_only=True)
class RangedArray(StridedArray):
    """An array in a remote file; each task reads its own byte ranges."""

    file: RemoteFile

    def __getitem__(self, index: Any) -> Values:
        """Return the part at `index`, read-only."""
        return self.read_part(index, self.file.read)


def open_remote_npy(location: Location, **how: Any) -> OpenedFile:
    """Open a .npy file, of which each task reads byte ranges; `how` are `sig_dims` and `chunks`."""
    file, shown = RemoteFile.of(location), location.shown
    # NumPy reads at most 10,000 characters of a header
    begin = BytesIO(file.read([(0, min(file.size, 1 << 14))])[0])
    with reading(shown, "a .npy file"):
        version = min(np.lib.format.read_magic(begin)[0], 2)  # 3 is 2 with other names of fields
        read_header = getattr(np.lib.format, f"read_array_header_{version}_0")
        shape, fortran_order, dtype = read_header(begin)
    check_values(shown, shape, dtype)
    offset, order = begin.tell(), -1 if fortran_order else 1
    if file.size < offset + math.prod(shape) * dtype.itemsize:
        raise FileFormatError(
            f"{shown} has {file.size} bytes, too few for values of shape {shape} and type {dtype}. "
            f"{COPY_AGAIN}"
        )
    strides = c_strides(shape[::order], dtype.itemsize)[::order]
    source = RangedArray(file=file, shape=shape, dtype=dtype, offset=offset, strides=strides)
    how |= {"title": location.path.stem, "reader": "NumPy, by byte ranges"}
    return open_source(source, prefix="from-npy", **how)
