"""Give zarr the objects of a file system of fsspec."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from typing import Any

from zarr.abc.store import Store
from zarr.storage import FsspecStore

from udfdask.io.check_zarr_chunks import CheckedReads
from udfdask.io.remote_location import look_up


class _InItsLoop(FsspecStore):
    """A store whose requests run in the event loop of its file system, not in that of zarr.

    So that one file system with one session per process serves zarr and all other requests, and
    fsspec closes the session at the end.
    """

    def __init__(self, fs: Any, path: str) -> None:
        Store.__init__(self, read_only=True)  # that of FsspecStore warns about the loop
        self.fs, self.path = fs, path
        self.allowed_exceptions = (FileNotFoundError, IsADirectoryError, NotADirectoryError)

    async def get(self, key: str, prototype: Any = None, byte_range: Any = None) -> Any:
        """Return the bytes of an object; None if there is no such object."""
        look_up(self.fs, f"{self.path}/{key}" if self.path else key)
        return await self._there(super().get(key, prototype, byte_range))

    async def exists(self, key: str) -> bool:
        """Return whether there is an object."""
        found: bool = await self._there(super().exists(key))
        return found

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        """Yield the names in a folder."""
        folder = "/".join(part for part in (self.path, prefix.rstrip("/")) if part)
        try:
            paths = await self._there(self.fs._ls(folder, detail=False))
        except FileNotFoundError:
            return
        for path in paths:
            yield path.rstrip("/").rpartition("/")[2]

    async def _there(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine in the event loop of the file system."""
        running = asyncio.run_coroutine_threadsafe(coroutine, self.fs.loop)
        return await asyncio.wrap_future(running)


class RemoteStore(CheckedReads, _InItsLoop):
    """Objects with chunks that are checked."""
