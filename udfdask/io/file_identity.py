"""Remembers a file as it was when it was opened, so that a task notices a later change.

The identity is taken before the first look inside the file. A task compares it on the descriptor
from which it reads. Libraries that open a path themselves read inside of `FileIdentity.unchanged`,
and `io.damaged_files.reading` turns their errors into ours.
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

# A named pipe in the file's place must not make a task wait for a writer; Windows has no such flag,
# but would translate line ends.
_READING = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileIdentity:
    """Size, times and place of a file at one moment.

    Tasks compare size and modification time wherever they run. The inode counts only on the machine
    and device where the file was opened: a copy on another node has another inode. It counts
    together with the change time, because some network file systems (FUSE, SMB) invent inodes and
    give a file a new one when their cache is emptied; the change time stays, and nobody can set it.
    The change time alone does not count: `chmod` or a hard link sets it, and leaves the values.
    """

    path: str
    """Absolute path of the file."""
    size: int
    """Bytes."""
    mtime_ns: int
    """When the values were last written, ns since 1970."""
    ctime_ns: int
    """When the values, the name or the permissions were last changed, ns since 1970."""
    inode: int
    """Number of the file on its device."""
    device: int
    """Number of the device, which only this machine knows."""
    machine: str
    """What tells this machine from others."""

    @classmethod
    def of(cls, path: str | os.PathLike[str]) -> FileIdentity:
        """Return the identity of the file at `path` as it is now."""
        found = Path(path).stat()
        return cls(
            path=os.fspath(path),
            size=found.st_size,
            mtime_ns=found.st_mtime_ns,
            ctime_ns=found.st_ctime_ns,
            inode=found.st_ino,
            device=found.st_dev,
            machine=_machine(),
        )

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        """Return what names of arrays depend on: all that two nodes see alike on a shared disk."""
        return (self.path, self.size, self.mtime_ns, self.ctime_ns, self.inode)

    def open(self) -> int:
        """Return a descriptor of the file, which the caller closes, or raise if it has changed."""
        try:
            descriptor = os.open(self.path, _READING)
        except OSError as error:
            advice = "put the file back, or open another one"
            if error.errno in (errno.EMFILE, errno.ENFILE):
                advice = "this process may not open more files, so raise the limit (ulimit -n)"
            raise FileFormatError(
                f"{self.path} had {self.size} bytes when it was opened, and now it cannot be "
                f"opened ({error.strerror}): {advice}"
            ) from error
        try:
            self.check(descriptor)
        except FileFormatError:
            os.close(descriptor)
            raise
        return descriptor

    def check(self, descriptor: int) -> None:
        """Take a descriptor of what is about to be read, or was; raise if it is another file."""
        # Of the descriptor, not of the path: the path may lead to another file a moment later.
        found = os.fstat(descriptor)
        here = self.machine == _machine()
        if found.st_size == self.size and self._same_time(found.st_mtime_ns, here=here):
            if not here or found.st_dev != self.device:
                return
            if found.st_ino == self.inode or found.st_ctime_ns == self.ctime_ns:
                return
        raise self._changed(found)

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Raise a FileFormatError if the file changes while a library reads it.

        The library opens the file by its path itself. What it raises over a changed file has that
        change as its reason.
        """
        os.close(self.open())
        try:
            yield
        finally:
            os.close(self.open())

    def _same_time(self, mtime_ns: int, *, here: bool) -> bool:
        """Take a modification time; return whether it is that at opening."""
        if mtime_ns == self.mtime_ns or here:
            return mtime_ns == self.mtime_ns
        # `scp -p` and `tar` copy files to the disks of nodes with times in whole seconds
        whole = 0 in (mtime_ns % _SECOND, self.mtime_ns % _SECOND)
        return whole and mtime_ns // _SECOND == self.mtime_ns // _SECOND

    def _changed(self, found: os.stat_result) -> FileFormatError:
        """Take what was found instead; return the error to raise."""
        inodes = ("", "")
        if (found.st_size, found.st_mtime_ns) == (self.size, self.mtime_ns):
            inodes = (f" as inode {self.inode}", f" as inode {found.st_ino}")
        return FileFormatError(
            f"{self.path} has changed since it was opened: expected {self.size} bytes written at "
            f"{_moment(self.mtime_ns)}{inodes[0]}, found {found.st_size} bytes written at "
            f"{_moment(found.st_mtime_ns)}{inodes[1]}. Open it again, and compute again what came "
            "from it; copy files to other nodes with their times (cp -p, rsync -t)"
        )


def _moment(time_ns: int) -> str:
    """Take ns since 1970; return them as a date and time, in UTC."""
    return f"{np.datetime64(time_ns, 'ns')}Z"


@cache
def _machine() -> str:
    """Return what tells this machine from others until it is started anew."""
    try:
        # Host names of nodes and containers can be equal.
        return Path("/proc/sys/kernel/random/boot_id").read_text()[:13]
    except OSError:
        return platform.node()
