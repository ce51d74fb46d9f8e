"""Remember the state of a file when it was opened, so that a task notices a later change.

Readers take the identity before they read anything from the file. A task compares the identity with
the file descriptor from which it reads. Libraries that open the path themselves are called inside
`FileIdentity.unchanged`, and `io.damaged_files.reading` turns their errors into ours.
"""

from __future__ import annotations

import errno
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

_SECOND = 1_000_000_000

# If the file was replaced by a named pipe, a task must not wait for a writer (O_NONBLOCK, not on
# Windows). Without O_BINARY, Windows would translate line endings.
_READING = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileIdentity:
    """Size, times and inode of a file at one time.

    Tasks compare size and modification time on every machine. They compare the inode only on the
    machine and device where the file was opened, because a copy on another node has another inode.
    A different inode is accepted if the change time is equal: some network file systems (FUSE, SMB)
    invent inodes and change them when their cache is emptied, but no program can set the change
    time. A different change time alone is also accepted, because `chmod` and new hard links set it
    without changing the values.
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
    device: int
    """Number of the device, which is valid only on this machine."""
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
            device=status.st_dev,
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
            advice = "put the file back, or open another one"
            if error.errno in (errno.EMFILE, errno.ENFILE):
                advice = "this process cannot open more files, so raise the limit (ulimit -n)"
            raise FileFormatError(
                f"{self.path} had {self.size} bytes when it was opened, but now it cannot be "
                f"opened ({error.strerror}): {advice}"
            ) from error
        try:
            self.check(descriptor)
        except FileFormatError:
            os.close(descriptor)
            raise
        return descriptor

    def check(self, descriptor: int) -> None:
        """Raise if an open file is not the file of this identity; call before or after reading."""
        # Use the descriptor, because the path can refer to another file a moment later.
        status = os.fstat(descriptor)
        here = self.machine == _machine()
        if status.st_size == self.size and self._same_time(status.st_mtime_ns, here=here):
            if not here or status.st_dev != self.device:
                return
            if status.st_ino == self.inode or status.st_ctime_ns == self.ctime_ns:
                return
        raise self._changed(status)

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

    def _same_time(self, mtime_ns: int, *, here: bool) -> bool:
        """Return whether a modification time is equal to that of this identity."""
        if mtime_ns == self.mtime_ns or here:
            return mtime_ns == self.mtime_ns
        # `scp -p` and `tar` copy files to other nodes with times in whole seconds
        in_seconds = 0 in (mtime_ns % _SECOND, self.mtime_ns % _SECOND)
        return in_seconds and mtime_ns // _SECOND == self.mtime_ns // _SECOND

    def _changed(self, status: os.stat_result) -> FileFormatError:
        """Return the error for a file that has changed."""
        inodes = ("", "")
        if (status.st_size, status.st_mtime_ns) == (self.size, self.mtime_ns):
            inodes = (f" as inode {self.inode}", f" as inode {status.st_ino}")
        return FileFormatError(
            f"{self.path} has changed since it was opened: expected {self.size} bytes written at "
            f"{_utc(self.mtime_ns)}{inodes[0]}, found {status.st_size} bytes written at "
            f"{_utc(status.st_mtime_ns)}{inodes[1]}. Open it again, and repeat all computations "
            "with it; copy files to other nodes with their times (cp -p, rsync -t)"
        )


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
