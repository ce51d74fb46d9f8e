"""A folder of records: partial results of any number of runs, up to a limit.

Several processes may use it at the same time. A record is an archive of arrays as `numpy.savez`
writes it, with a checksum of each; nothing is pickled, so that a file from elsewhere cannot run
code. It is renamed into place when it is complete; one that has been removed since it was found is
computed again. Tasks write records in 0.2 ms of CPU each and do not wait for the disk: a file that
is incomplete after a power failure counts as missing.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import threading
import time
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dask.config
import numpy as np

from udfdask.base.config import cache_limit
from udfdask.base.names.origins import processor
from udfdask.base.replacing import flush
from udfdask.base.types import AnyArray
from udfdask.errors import ArgumentTypeError, ArgumentValueError

SUFFIX = ".record"
MARK = "udfdask-cache"
"""Name of an empty file that marks a folder as a cache."""
_RECORDS = "records"
_NAMES = "names"
"""Array in an archive with the name of the record, and those of all other arrays."""

_BLOCK = 4096
"""Smallest part of a disk that a file takes, in bytes."""
_STALE = 3600
"""Age in seconds at which an unfinished file belongs to a process that was killed."""


class DamagedRecordError(Exception):
    """A file is not the complete record that was expected; it counts as missing."""


@dataclass(frozen=True, slots=True, eq=False)
class Record:
    """The arrays of a partial result."""

    name: str
    """Name of the record: equal for equal data, code, parameters and chunk."""
    arrays: Mapping[str, AnyArray]
    """Buffers by name."""
    aux: Mapping[str, AnyArray]
    """Rows of aux data by name."""

    @property
    def nbytes(self) -> int:
        """Size of the arrays in bytes."""
        return sum(int(a.nbytes) for a in (*self.arrays.values(), *self.aux.values()))


@dataclass(frozen=True, slots=True)
class RecordFolder:
    """A folder of records; every process that knows its path can read and write."""

    path: str
    """Absolute path of the folder."""
    limit: int | None = None
    """Largest size of all records in bytes. None for the records of one run that is resumed: then a
    merge replaces its sources, because the folder would grow by a frame for each chunk."""
    processor: str = field(default_factory=processor)
    """Type of the processor in the names of records: another one stores nothing."""

    def __fspath__(self) -> str:
        """Return the path that the user knows."""
        return os.path.dirname(self.path)  # noqa: PTH120

    def put(self, record: Record, superfluous: Iterable[str] = ()) -> None:
        """Store a record, and remove those that nobody needs when this one is safe."""
        if self.processor != processor():
            return
        if self.limit is not None and record.nbytes > self.limit:
            return
        remove = [name for name in superfluous if os.path.exists(self._file_of(name))]  # noqa: PTH110
        write_record(record, self._file_of(record.name), safe=bool(remove))
        self.remove(remove)
        if self.limit is not None:
            _keep_limit(self, self.limit, record.nbytes)

    def get(self, name: str) -> Record:
        """Return a record; raise a DamagedRecordError without it; remove it if it is damaged."""
        try:
            return read_record(name, Path(self._file_of(name)))
        except DamagedRecordError:
            self.remove([name])
            raise

    def use(self, name: str) -> bool:
        """Return whether a record exists; its modification time becomes the time of this use."""
        with contextlib.suppress(OSError):  # on a read-only disk
            os.utime(self._file_of(name))
        return os.path.exists(self._file_of(name))  # noqa: PTH110

    def remove(self, names: Iterable[str]) -> None:
        """Remove records, as far as they exist and can be removed."""
        for name in names:
            with contextlib.suppress(OSError):
                os.unlink(self._file_of(name))  # noqa: PTH108

    def is_empty(self) -> bool:
        """Return whether there is no record."""
        return not any(name.endswith(SUFFIX) for name in os.listdir(self.path))  # noqa: PTH208

    def _file_of(self, name: str) -> str:
        # a Path would take twice as long
        return f"{self.path}{os.sep}{name}{SUFFIX}"


def write_record(record: Record, path: str | os.PathLike[str], *, safe: bool = False) -> None:
    """Write a record under another name, and rename it; if `safe`, wait until it is on the disk."""
    folder, name = os.path.split(path)  # paths as texts: a Path would take 0.01 ms
    unfinished = f"{folder}{os.sep}.{name}-{uuid.uuid4().hex[:8]}"
    members: dict[str, Any] = {f"arrays/{key}": array for key, array in record.arrays.items()}
    members |= {f"aux/{key}": array for key, array in record.aux.items()}
    members[_NAMES] = np.array([record.name, *members])
    try:
        with open(unfinished, "xb") as file:  # noqa: PTH123
            np.savez(file, **members)
            if safe:
                file.flush()
                os.fsync(file.fileno())
        os.replace(unfinished, path)  # noqa: PTH105
        if safe:
            flush(Path(folder), deep=False)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(unfinished)  # noqa: PTH108
        raise


def read_record(name: str, path: Path) -> Record:
    """Return the record of a name from its file; raise unless the file is that complete record."""
    found: dict[str, dict[str, AnyArray]] = {"arrays": {}, "aux": {}}
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            own, *members = map(str, file[_NAMES])
            for member in members:
                kind, _, key = member.partition("/")
                found[kind][key] = file[member]
    except Exception as error:  # zipfile and NumPy have no common base class of errors
        raise DamagedRecordError(f"the record {path} is missing or damaged: {error}") from error
    if own != name:
        raise DamagedRecordError(f"{path} is not the record {name}, but {own}")
    return Record(name, **found)


def can_store(dtype: np.dtype[Any]) -> bool:
    """Return whether a record can hold arrays of a dtype: not if they contain objects."""
    try:
        same = np.lib.format.descr_to_dtype(np.lib.format.dtype_to_descr(dtype)) == dtype
    except (ValueError, TypeError):
        return False
    return same and not dtype.hasobject


def check_folder(path: str | os.PathLike[str]) -> Path:
    """Return the absolute path of a folder of records; raise if it has other files."""
    if not isinstance(path, (str, os.PathLike)):
        raise ArgumentTypeError(f"cache must be the path of a folder, not {path!r}")
    text = str(os.fspath(path))
    if not text.strip() or "://" in text:
        raise ArgumentValueError(f"cache must be the path of a local folder, not {text!r}")
    folder = Path(text).expanduser().absolute()
    if not folder.parent.is_dir():
        raise FileNotFoundError(
            f"there is no folder {folder.parent} for the cache {folder.name}: create it first"
        )
    if folder.exists() and not folder.is_dir():
        raise ArgumentValueError(f"{folder} is not a folder, so it cannot be a cache")
    if folder.is_dir() and not (folder / MARK).exists() and list(folder.iterdir()):
        raise ArgumentValueError(
            f"{folder} is a folder with other files, so it cannot be a cache: choose the path of "
            "a new folder"
        )
    return folder


def cache(
    folder: str | os.PathLike[str] | None, limit: int | str = "20 GB"
) -> contextlib.AbstractContextManager[Any]:
    """Keep partial results of all runs in a folder, and read those that are there.

    From this call on, each computation by udfdask computes only chunks for which a UDF of the run
    has no partial result in the folder. In a ``with`` statement, this ends with its block.

    Parameters
    ----------
    folder : str or path-like, or None
        Folder of the cache: new, empty, or a cache already. All workers must be able to write to
        it. Several processes can use it at the same time. None for no cache.
    limit : int or str
        Largest size of the folder, in bytes or as a text such as ``"500 MB"``. Partial results
        that have not been used for the longest time are removed first.

    Returns
    -------
    context manager
        It restores the setting before this call.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If `folder` cannot be a cache, or `limit` is not a positive size.
    FileNotFoundError
        If the parent folder does not exist.

    See Also
    --------
    compute : Its argument `cache` is the folder of one computation.
    Result.to_zarr : With `resume=True`, partial results are kept until the store is complete.

    Notes
    -----
    `compute`, `Result.compute`, `Result.to_zarr`, accessors and the command line use the cache;
    `dask.compute`, `persist` and `run_udf_iter` do not.

    A partial result belongs to the data (path, size and modification time of their files), the
    code and parameters of the UDF, the frames of the chunk in the region of interest, and the
    versions of packages. If one of these has no name that is the same in every process, the run is
    computed without the cache, with a warning.

    Examples
    --------
    >>> import tempfile, dask.array as da, udfdask as ud
    >>> from udfdask.udfs import SumSigUDF, SumUDF
    >>> x = da.ones((4, 6, 8, 8), chunks=(1, 6, 8, 8))
    >>> with tempfile.TemporaryDirectory() as folder, ud.cache(folder, limit="1 GB"):
    ...     first = ud.run_udf(x, SumUDF(), roi=(slice(0, 2),)).compute()
    ...     second = ud.run_udf(x, SumUDF()).compute()  # loads the other two chunks
    >>> second["intensity"].max()
    np.float64(24.0)
    """
    path = None if folder is None else str(check_folder(folder))
    with dask.config.set({"udfdask.cache-limit": limit}):
        cache_limit()
    return dask.config.set({"udfdask.cache-folder": path, "udfdask.cache-limit": limit})


def open_folder(path: str | os.PathLike[str], limit: int | None) -> RecordFolder:
    """Return a folder of records, which is made if it does not exist."""
    folder = check_folder(path)
    folder.mkdir(exist_ok=True)
    (folder / MARK).touch()  # first, because a folder without a mark is not a cache
    (folder / _RECORDS).mkdir(exist_ok=True)
    return RecordFolder(str(folder / _RECORDS), limit)


def folder_beside(path: str | os.PathLike[str]) -> str:
    """Return the path of the folder with the partial results of a file or store."""
    return f"{os.fspath(path)}.cache"


def remove_folder(path: str | os.PathLike[str]) -> None:
    """Remove a folder of records; killed at any moment, the rest is a folder of records."""
    folder = Path(path).expanduser().absolute()
    if (folder / MARK).exists():
        shutil.rmtree(folder / _RECORDS, ignore_errors=True)
        (folder / MARK).unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # not empty: somebody has put something there
            folder.rmdir()


_looking = threading.Lock()
_left: dict[RecordFolder, float] = {}
"""Bytes that this process can write to each folder before it looks at all files again."""


def _keep_limit(folder: RecordFolder, limit: int, nbytes: int) -> None:
    """Note that a file has been written; remove others if there is no room for it."""
    # looking at 100,000 files takes 0.3 s: only when half of the room that is left may be used up
    _left[folder] = _left.get(folder, 0) - nbytes - _BLOCK
    # other tasks need not wait, nor a process that was forked while the lock was held
    if _left[folder] <= 0 and _looking.acquire(blocking=False):
        try:
            total = remove_unused(folder.path, limit)
            _left[folder] = max((limit - total) / 2, limit / 30)
        finally:
            _looking.release()


def remove_unused(path: str, limit: int) -> int:
    """Remove records if they exceed the limit, down to 90 % of it; return the size of the rest."""
    found: list[tuple[int, int, str]] = []
    with contextlib.suppress(OSError), os.scandir(path) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):  # another process has removed it
                status = entry.stat()
                if entry.name.endswith(SUFFIX):
                    on_disk = -(-status.st_size // _BLOCK) * _BLOCK
                    found.append((status.st_mtime_ns, on_disk, entry.path))
                elif entry.name.startswith(".") and status.st_mtime < time.time() - _STALE:
                    os.unlink(entry.path)  # noqa: PTH108
    total = sum(size for _, size, _ in found)
    most = total if total <= limit else 0.9 * limit
    for _, size, file in sorted(found):
        if total <= most:
            break
        with contextlib.suppress(OSError):
            os.unlink(file)  # noqa: PTH108
        total -= size
    return total
