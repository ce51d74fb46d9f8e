"""Remember the state of a file when it was opened, so that a task notices a later change.

Readers take the identity before they read anything from the file. A task compares the identity with
the file descriptor from which it reads; libraries are called inside `FileIdentity.unchanged`.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from udfdask.errors import FileFormatError

_READING = os.O_RDONLY | getattr(os, "O_BINARY", 0)  # Windows would translate line endings


@dataclass(frozen=True, slots=True, kw_only=True)
class FileIdentity:
    """Size, times and inode of a file at one time.

    Tasks compare size and modification time on every machine, and the inode on the machine where
    the file was opened. A different inode is accepted if the change time is equal: some network
    file systems (FUSE, SMB) invent inodes, but no program can set the change time.
    """

    path: str
    """Absolute path of the file."""
    size: int
    """Size in bytes."""
    mtime_ns: int
    """Time of the last change of the values, in ns since 1970."""
    ctime_ns: int
    """Time of the last change of the values, the name or the permissions, in ns since 1970."""
    inode: int
    """Number of the file on its device."""
    machine: str
    """Identifier of this machine."""

    @classmethod
    def of(cls, path: str | os.PathLike[str]) -> FileIdentity:
        """Return the present identity of the file at `path`."""
        status = Path(path).stat()
        return cls(
            path=os.fspath(path),
            size=status.st_size,
            mtime_ns=status.st_mtime_ns,
            ctime_ns=status.st_ctime_ns,
            inode=status.st_ino,
            machine=_machine(),
        )

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        """Return the part on which names of arrays depend, equal on all nodes of a shared disk."""
        return (self.path, self.size, self.mtime_ns, self.ctime_ns, self.inode)

    def lasting_identity(self) -> tuple[Any, ...]:
        """Return the part that names the data of a run that may be resumed days later."""
        return (self.path, self.size, self.mtime_ns)

    def open(self) -> int:
        """Return a file descriptor, which the caller must close; raise if the file has changed."""
        try:
            descriptor = os.open(self.path, _READING)
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
        if same and (
            self.machine != _machine()
            or status.st_ino == self.inode
            or status.st_ctime_ns == self.ctime_ns
        ):
            return
        raise FileFormatError(
            f"{self.path} has changed since it was opened: expected {self.size} bytes written at "
            f"{_utc(self.mtime_ns)}, found {status.st_size} bytes written at "
            f"{_utc(status.st_mtime_ns)}. Open it again, and repeat all computations with it; copy "
            "files to other nodes with their times (cp -p, rsync -t)"
        )

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Raise a FileFormatError if the file changes while a library reads it by its path.

        If the file has changed, this error replaces the error of the library.
        """
        os.close(self.open())
        try:
            yield
        finally:
            os.close(self.open())


def _utc(time_ns: int) -> str:
    """Return a time in ns since 1970 as a date and time in UTC."""
    return f"{np.datetime64(time_ns, 'ns')}Z"


@cache
def _machine() -> str:
    """Return an identifier of this machine that is valid until its next start."""
    try:
        # not the host name, which can be equal for several nodes or containers
        return Path("/proc/sys/kernel/random/boot_id").read_text()[:13]
    except OSError:
        return platform.node()
