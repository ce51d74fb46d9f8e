"""Read udfdask's settings from dask's configuration, with their defaults.

Set them like any dask setting, with `dask.config.set({"udfdask.tile-bytes": "512 KiB"})` or
`DASK_UDFDASK__TILE_BYTES`. The plan reads the settings once; `map-files` is read when a file is
opened. Settings of a worker are ignored, except `cuda-device`, which describes the worker.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask.config
from dask.system import CPU_COUNT
from dask.utils import parse_bytes

from udfdask.errors import ArgumentValueError

DEFAULTS: dict[str, Any] = {
    "split-every": 8,
    "tile-bytes": "4 MiB",
    "threads-per-task": 1,
    "worker-memory": None,
    "worker-threads": None,
    "inline-bytes": "64 KiB",
    "device-tile-bytes": "128 MiB",
    "cuda-device": 0,
    "map-files": True,
    "cache-folder": None,
    "cache-limit": "20 GB",
}


def _get(name: str) -> Any:
    return dask.config.get(f"udfdask.{name}", default=DEFAULTS[name])


def _get_number(name: str, convert: Callable[[Any], float], *, least: int, words: str) -> float:
    """Return a setting as a number of at least `least`; `words` describe it in the message."""
    value = _get(name)
    try:
        number = math.nan if isinstance(value, bool) else float(convert(value))
    except (TypeError, ValueError, AttributeError, KeyError, OverflowError):
        number = math.nan  # dask's parsers raise all of these
    if not least <= number < math.inf:
        raise ArgumentValueError(f"config udfdask.{name} must be {words}, not {value!r}")
    return number


def _get_bytes(name: str) -> int:
    return int(_get_number(name, parse_bytes, least=1, words="a positive number of bytes"))


def _get_int(name: str, least: int) -> int:
    return int(_get_number(name, int, least=least, words=f"an integer of at least {least}"))


def map_files() -> bool:
    """Return whether tasks map files into memory; otherwise tasks read the parts that they need."""
    value = _get("map-files")
    if not isinstance(value, bool):
        raise ArgumentValueError(f"config udfdask.map-files must be True or False, not {value!r}")
    return value


def tile_bytes() -> int:
    """Return the maximum size of a tile, in bytes of converted data.

    Each tile acquires Python's lock several times, and threads wait for it. With corrections and a
    sum on two threads without a common cache: 4.5 GB/s in tiles of 1 MiB, 7.7 in tiles of 4 MiB. On
    one thread: 4.2 and 4.0 GB/s.
    """
    return _get_bytes("tile-bytes")


def chunk_bytes() -> int:
    """Return the best size of a chunk in bytes, which is dask's own setting `array.chunk-size`."""
    return int(parse_bytes(dask.config.get("array.chunk-size")))


def device_tile_bytes() -> int:
    """Return the maximum size of a tile on a CUDA device, in bytes of converted data."""
    return _get_bytes("device-tile-bytes")


def cuda_device() -> int:
    """Return the number of this process's CUDA device among the devices that it can use."""
    return _get_int("cuda-device", 0)


def inline_bytes() -> int:
    """Return the maximum pickled size of UDFs and parameters that are sent with every task.

    For a cluster, serializing a task takes 0.31 ms with 1 or 16 kB of parameters, 0.32 with 64 kB
    and 0.42 with 256 kB.
    """
    return _get_bytes("inline-bytes")


def split_every() -> int | bool:
    """Return the fan-in of merge trees, or False to merge in one step."""
    return False if _get("split-every") is False else _get_int("split-every", 2)


def threads_per_task() -> int:
    """Return the number of threads that BLAS, OpenMP and numba can use inside a task."""
    return _get_int("threads-per-task", 1)


def cache_folder() -> str | None:
    """Return the folder in which partial results are kept, or None to keep none."""
    value = _get("cache-folder")
    if value is not None and not isinstance(value, (str, os.PathLike)):
        raise ArgumentValueError(
            f"config udfdask.cache-folder must be the path of a folder, or None, not {value!r}"
        )
    return None if value is None else str(value)


def cache_limit() -> int:
    """Return the largest size of the cache in bytes."""
    return _get_bytes("cache-limit")


def worker_threads() -> int:
    """Return the number of threads of one worker process, for which memory is predicted.

    This is the setting `udfdask.worker-threads`; without it, the number of threads that dask uses
    in this process: dask's setting `num_workers`, or the number of cores.
    """
    if _get("worker-threads") is not None:
        return _get_int("worker-threads", 1)
    number = dask.config.get("num_workers", default=None)
    return number if isinstance(number, int) and number > 0 else max(1, CPU_COUNT)


def worker_memory() -> int | None:
    """Return the memory of one worker in bytes, or None if it is unknown.

    This is the setting `udfdask.worker-memory`; without it, the memory of this machine (or of its
    control group) divided by its number of cores.
    """
    if _get("worker-memory") is not None:
        return _get_bytes("worker-memory")
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None
    limit = Path("/sys/fs/cgroup/memory.max")
    if limit.exists() and (text := limit.read_text().strip()).isdigit():
        total = min(total, int(text))
    return int(total) // (os.cpu_count() or 1)


def hidden_paths() -> tuple[str, ...]:
    """Return patterns of the files that dask leaves out of tracebacks; none to show all lines."""
    return tuple(dask.config.get("admin.traceback.shorten", default=None) or ())
