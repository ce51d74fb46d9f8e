"""Ask servers for the state of objects: size and ETag, or the time of the last change."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple

import numpy as np

from udfdask.io.remote_errors import is_missing

_VERSIONS = ("ETag", "etag", "generation", "md5Hash", "Content-MD5", "Digest", "sha", "crc32c")
"""Names that file systems give to a text that changes with the contents of an object."""

_TIMES = (
    "LastModified",
    "last_modified",
    "Last-Modified",
    "mtime",
    "updated",
    "modified",
    "modificationTime",
    "modify",
    "last_write_time",
    "created",  # the time of writing, in memory
)
"""Names that file systems give to the time of the last change."""

_AT_ONCE = 64
"""Maximum number of requests at the same time."""


class State(NamedTuple):
    """The state of an object at one time."""

    text: str
    """Size, and ETag or time of the last change, in words."""
    is_version: bool
    """Whether the text changes with the contents; otherwise the server only tells the size."""
    size: int | None
    """Size in bytes; None if the server does not tell it."""
    modified: float | None
    """Time of the last change in seconds since 1970; None if the server does not tell it."""


def state_in(info: dict[str, Any]) -> State:
    """Return the state in the description of an object by its file system."""
    size = info.get("size")
    texts = [f"{size} bytes"] if size is not None else []
    times = [found for name in _TIMES if (found := info.get(name))]
    versions = [f"{name} {found}" for name in _VERSIONS if (found := info.get(name))]
    if not versions and times:
        seconds = _seconds(times[0])
        versions = [f"written at {times[0] if seconds is None else _utc(seconds)}"]
    return State(
        text=", ".join([*texts, *versions[:1]]),
        is_version=bool(versions),
        size=None if size is None else int(size),
        modified=_seconds(times[0]) if times else None,
    )


def states_of(fs: Any, paths: Iterable[str]) -> dict[str, State]:
    """Return the states of objects, one small request for each; missing objects are left out."""
    from fsspec.asyn import sync

    wanted = list(paths)
    cache = getattr(fs, "sync_fs", fs)
    for path in wanted:
        cache.invalidate_cache(path)  # no listing made before a change
    infos = sync(fs.loop, _infos, fs, wanted)
    return {
        path: state_in(info) for path, info in zip(wanted, infos, strict=True) if info is not None
    }


def listed_states(fs: Any, folder: str) -> dict[str, State] | None:
    """Return the states of all objects in a folder; None if it cannot be listed."""
    from fsspec.asyn import sync

    cache = getattr(fs, "sync_fs", fs)
    if "http" in cache.protocol or "https" in cache.protocol:  # pages with links
        return None
    cache.invalidate_cache(folder)
    try:
        found = sync(fs.loop, fs._find, folder, detail=True)
    except (PermissionError, NotImplementedError):  # it may be allowed to read but not to list
        return None
    return {path: state_in(info) for path, info in found.items()}


async def _infos(fs: Any, paths: list[str]) -> list[dict[str, Any] | None]:
    """Return the descriptions of objects, None for missing ones."""
    gate = asyncio.Semaphore(_AT_ONCE)

    async def info(path: str) -> dict[str, Any] | None:
        async with gate:
            try:
                found: dict[str, Any] = await fs._info(path)
            except OSError as error:
                if not is_missing(error):
                    raise
                return None
        return None if found.get("type") == "directory" else found

    return list(await asyncio.gather(*map(info, paths)))


def _seconds(time: Any) -> float | None:
    """Return a time of a file system in seconds since 1970; None if it has another form."""
    if isinstance(time, datetime):
        return time.timestamp()
    if isinstance(time, int | float):
        return time / 1000 if time > 1e11 else float(time)  # some count milliseconds
    for parse in (parsedate_to_datetime, datetime.fromisoformat):
        try:
            return parse(time).timestamp()
        except (TypeError, ValueError):
            continue
    return None


def _utc(seconds: float) -> str:
    """Return a time in seconds since 1970 as a date and time in UTC, to the microsecond."""
    return f"{np.datetime64(round(seconds * 1e6), 'us')}Z"
