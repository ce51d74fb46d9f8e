"""Keeps compiled kernels on disk, and never lets a disk fail a run.

numba's own cache raises when its folder is full or becomes read-only, which would end a task that
has nothing to write. It also numbers its files: two processes that compile at the same time may
both write number 1, and a disk that fills up may hold the old number 1 under a new index. Here the
name of a file says what is in it, and a file that is not whole is not used.
"""

from __future__ import annotations

import contextlib
import hashlib
import pickle
import threading
import uuid
import warnings
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import FunctionCache, NullCache
from numba.core.serialize import dumps

from udfdask.errors import UDFWarning

DIGEST = hashlib.sha256().digest_size
"""Bytes at the beginning of a file that say what the others have to be."""


class KernelCache(FunctionCache):
    """The compiled versions of one kernel on disk."""

    def __init__(self, function: Callable[..., Any], options: str) -> None:
        super().__init__(function)  # type: ignore[no-untyped-call]
        folder = Path(function.__code__.co_filename).parent
        stamp = self._impl.locator.get_source_stamp().hex() + _stamp_of(folder) + options
        files: Any = KernelFiles(Path(self._cache_path), self._impl.filename_base, stamp)
        self._cache_file = files

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the version for a signature, None if there is no usable one."""
        try:
            return super().load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        except OSError:  # a folder that cannot be read: what is missing is compiled
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a version, if that is possible."""
        if _trouble.told:
            return
        try:
            super().save_overload(sig, data)  # type: ignore[no-untyped-call]
        except OSError as error:
            _trouble.tell(f"in {self._cache_path}: {error}")


@lru_cache(maxsize=8)
def _stamp_of(folder: Path) -> str:
    """Return a digest of all modules of a folder: a kernel may call those of other files there.

    numba looks at a kernel's own file alone, and would go on with what is on disk.
    """
    digest = hashlib.sha256()
    for file in sorted(folder.glob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()


class NoCache(NullCache):
    """What stands for the cache of a kernel where no folder can be written to."""

    def save_overload(self, sig: Any, data: Any) -> None:
        """Say that nothing is kept."""
        _trouble.tell("in any folder: none can be written to")


class KernelFiles:
    """A file for each compiled version of a kernel, in the folder of all kernels.

    Parameters
    ----------
    folder : Path
        Where the files are; made when the first one is written.
    base : str
        How the names of all files of the kernel begin.
    stamp : str
        What the source and the compiler were: files with another stamp are out of date.
    """

    def __init__(self, folder: Path, base: str, stamp: str) -> None:
        self._folder = folder
        self._base = base
        self._stamp = hashlib.sha256(f"{stamp} {numba.__version__}".encode()).hexdigest()[:16]

    def load(self, key: Any) -> Any:
        """Return the data of a key; None if there are none, or if the file is damaged."""
        try:
            content = self._path(key).read_bytes()
        except FileNotFoundError:
            return None
        data = content[DIGEST:]
        if hashlib.sha256(data).digest() != content[:DIGEST]:
            return None  # compiled again, and written over
        return pickle.loads(data)

    def save(self, key: Any, data: Any) -> None:
        """Write the data of a key in one step, and remove what is out of date."""
        content = dumps(data)  # type: ignore[no-untyped-call]
        path = self._path(key)
        scratch = path.with_name(f"{path.name}.tmp.{uuid.uuid4().hex[:16]}")
        try:
            scratch.write_bytes(hashlib.sha256(content).digest() + content)
            scratch.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                scratch.unlink()
            raise
        self._remove(lambda name: not name.startswith(f"{self._base}.{self._stamp}."))

    def flush(self) -> None:
        """Remove all files of the kernel."""
        self._remove(lambda name: True)

    def _path(self, key: Any) -> Path:
        """Return the file of a key, which numba makes of the signature, the processor and code."""
        digest = hashlib.sha256(repr(key).encode()).hexdigest()[:32]
        return self._folder / f"{self._base}.{self._stamp}.{digest}.nbc"

    def _remove(self, chosen: Callable[[str], bool]) -> None:
        """Remove files of the kernel that were chosen by their name."""
        for path in self._folder.glob(f"{self._base}.*.nbc"):
            if chosen(path.name):
                with contextlib.suppress(OSError):
                    path.unlink()


class _Trouble:
    """Whether this process has been told that it cannot keep kernels."""

    def __init__(self) -> None:
        self.told = False
        self._lock = threading.Lock()

    def tell(self, why: str) -> None:
        """Warn, the first time, that kernels cannot be kept."""
        with self._lock:
            first, self.told = not self.told, True
        if first:
            warnings.warn(
                f"compiled kernels cannot be kept {why}. The run goes on, but each process compiles"
                " them anew, which takes seconds: set NUMBA_CACHE_DIR to a folder with free space",
                UDFWarning,
                stacklevel=2,
            )


_trouble = _Trouble()


def cache_of(function: Callable[..., Any], options: str) -> Any:
    """Return the cache of a kernel, in the folder that numba chooses.

    That is `NUMBA_CACHE_DIR`, else beside the source, else a folder of the user.
    """
    try:
        return KernelCache(function, options)
    except (RuntimeError, OSError):  # no folder at all, or no file with the source
        in_file = Path(function.__code__.co_filename).is_file()
        return NoCache() if in_file else NullCache()
