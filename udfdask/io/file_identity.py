"""Local files: their state when they were opened, so that tasks notice a change, and their errors.

Readers take the identity before they read anything from the file. A task compares the identity with
the file descriptor from which it reads; libraries are called inside `unchanged`.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from udfdask.errors import ArgumentTypeError, FileFormatError, UDFError

COPY_AGAIN = "Is the file complete? Copy it again from where it was recorded, or write it anew"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileIdentity:
    """Size, times and inode of a file at one time.

    Tasks compare size and modification time on every machine, and the inode on the machine where
    the file was opened. A different inode is accepted if the change time is equal: some network
    file systems (FUSE, SMB) invent inodes, but no program can set the change time.
    """

    path: str
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    machine: str

    @classmethod
    def of(cls, path: str | os.PathLike[str]) -> FileIdentity:
        """Return the present identity of the file at an absolute path."""
        status = Path(path).stat()
        when = {"mtime_ns": status.st_mtime_ns, "ctime_ns": status.st_ctime_ns}
        what = {"size": status.st_size, "inode": status.st_ino}
        return cls(path=os.fspath(path), machine=_machine(), **what, **when)

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        """Return the part on which names of arrays depend, equal on all nodes of a shared disk."""
        return (self.path, self.size, self.mtime_ns, self.ctime_ns, self.inode)

    def lasting_identity(self) -> tuple[Any, ...]:
        """Return the part that names the data of a run that may be resumed days later."""
        return (self.path, self.size, self.mtime_ns)

    def open(self) -> int:
        """Return a file descriptor, which the caller must close; raise if the file has changed."""
        try:
            # Windows would translate line endings
            descriptor = os.open(self.path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        except OSError as error:
            raise FileFormatError(
                f"{self.path} had {self.size} bytes when it was opened, but now it cannot be "
                f"opened ({error.strerror}): put the file back, or open another one"
            ) from error
        try:
            self.check(descriptor)
        except FileFormatError:
            os.close(descriptor)
            raise
        return descriptor

    def check(self, descriptor: int) -> None:
        """Raise if an open file is not the file of this identity; call before or after reading."""
        status = os.fstat(descriptor)  # the path can refer to another file a moment later
        same = (status.st_size, status.st_mtime_ns) == (self.size, self.mtime_ns)
        is_it = status.st_ino == self.inode or status.st_ctime_ns == self.ctime_ns
        if not same or not (is_it or self.machine != _machine()):
            raise FileFormatError(
                f"{self.path} has changed since it was opened: expected {self.size} bytes written "
                f"at {np.datetime64(self.mtime_ns, 'ns')}Z, found {status.st_size} bytes written "
                f"at {np.datetime64(status.st_mtime_ns, 'ns')}Z. Open it again, and repeat all "
                "computations with it; copy files to other nodes with their times (cp -p, rsync -t)"
            )


@contextmanager
def unchanged(files: Sequence[FileIdentity]) -> Iterator[None]:
    """Raise if a file changes while a library reads it, in place of the library's error."""
    for file in files:
        os.close(file.open())
    try:
        yield
    finally:
        for file in files:
            os.close(file.open())


@cache
def _machine() -> str:
    """Return an identifier of this machine that is valid until its next start."""
    try:
        # not the host name, which can be equal for several nodes or containers
        return Path("/proc/sys/kernel/random/boot_id").read_text()[:13]
    except OSError:
        return platform.node()


@contextmanager
def reading(
    path: str | os.PathLike[str], reader: str, *, part: str = "", advice: str = COPY_AGAIN
) -> Iterator[None]:
    """Turn the errors of a package that reads a file into a `FileFormatError` with its path."""
    try:
        yield
    except (UDFError, ImportError, Warning):
        raise  # these do not mean that the file is damaged; a MemoryError can mean it
    except Exception as error:
        # Readers have no common base class of errors: 331 damaged zarr stores raised 14 types.
        where = f", {part}," if part else ""
        raise FileFormatError(
            f"{os.fspath(path)}{where} cannot be read as {reader}: {in_words(error)}. {advice}"
        ) from error


def in_words(error: BaseException) -> str:
    """Return the type and message of another package's error in one line of at most 300 letters."""
    words = " ".join(str(error).split()).rstrip(".")
    words = f"{words[:300]}..." if len(words) > 300 else words
    return f"{type(error).__name__}: {words}" if words else type(error).__name__


def existing_file(path: str | os.PathLike[str]) -> Path:
    """Return the absolute path of an existing file or folder; a pipe would wait forever."""
    try:
        file = Path(path).expanduser().absolute()
    except TypeError as error:
        raise ArgumentTypeError(
            f"a path must be a str or a Path, got {type(path).__name__}: an array needs no opening"
        ) from error
    if not (file.is_file() or file.is_dir()):
        also = "exists" if file.parent.is_dir() else "does not exist either"
        where = f"{os.fspath(path)!r} (the folder {file.parent} {also})"
        raise FileNotFoundError(f"there is no file {where}: check the path")
    return file


def check_values(where: str, shape: tuple[int, ...], dtype: DTypeLike) -> None:
    """Raise if an array in a file, as the file describes it, cannot contain frames."""
    if np.dtype(dtype).kind not in "biufcmM" or not shape:
        raise FileFormatError(
            f"expected an array of numbers, but {where} contains values of type {dtype} and "
            f"shape {shape}: check the path, or pass another dataset="
        )
