"""Data sets by name, as memory-mapped .npy files that are made once."""

from __future__ import annotations

import functools
import math
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

import dask.array as da
import numpy as np

from udfdask.io import open_file

GIGABYTE = 1 << 30
"""Bytes of a gigabyte here: two of them are a scan of 256 x 256 positions."""

CHUNK_BYTES = 128 << 20
"""Bytes of a chunk, at most, where one frame is not larger: those of dask by default."""


@dataclass(frozen=True, kw_only=True)
class Layout:
    """A data set of a known kind, at any size: the first navigation axis grows and shrinks."""

    name: str
    line: tuple[int, ...]
    """Extent of all navigation axes but the first, in positions."""
    sig: tuple[int, ...]
    """Shape of a frame, in pixels."""
    dtype: str
    mean: float
    """Mean count of a pixel."""

    @property
    def sig_dims(self) -> int:
        """Number of signal axes."""
        return len(self.sig)

    def shape(self, gigabytes: float) -> tuple[int, ...]:
        """Return the shape of about so many gigabytes.

        The lines of a small data set are shorter too, so that there are always several.
        """
        frame = math.prod(self.sig) * np.dtype(self.dtype).itemsize
        frames = max(4, round(gigabytes * GIGABYTE / frame))
        most = max(2, 2 * math.isqrt(frames))
        line = tuple(min(n, most) for n in self.line)
        return (max(2, round(frames / math.prod(line))), *line, *self.sig)

    def chunks(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return chunks of whole frames, at most 128 MiB, and of a small data set a few of them."""
        frame = math.prod(self.sig) * np.dtype(self.dtype).itemsize
        room = max(1, CHUNK_BYTES // frame)
        along_line = min(room, shape[1])
        rows = max(1, min(room // along_line, -(-shape[0] // 4)))
        return (rows, along_line, *self.sig)


LAYOUTS = {
    layout.name: layout
    for layout in [
        Layout(name="scan", line=(256,), sig=(128, 128), dtype="<u2", mean=20),
        Layout(name="float32", line=(256,), sig=(128, 128), dtype="<f4", mean=20),
        Layout(name="uint8", line=(256,), sig=(128, 128), dtype="|u1", mean=20),
        Layout(name="big-endian", line=(256,), sig=(128, 128), dtype=">u2", mean=20),
        Layout(name="bool", line=(256,), sig=(128, 128), dtype="|b1", mean=0.5),
        Layout(name="int32", line=(256,), sig=(128, 128), dtype="<i4", mean=20),
        Layout(name="float64", line=(256,), sig=(128, 128), dtype="<f8", mean=20),
        Layout(name="eds", line=(512,), sig=(2048,), dtype="|u1", mean=0.5),
        Layout(name="large", line=(8,), sig=(4096, 4096), dtype="<u2", mean=20),
        Layout(name="events", line=(256,), sig=(256, 256), dtype="|u1", mean=0.01),
    ]
}
"""At 2 gigabytes the scan has 256 x 256 positions; so has the EDS map 512 x 512 at a half."""


CHUNK_LAYOUTS = {
    "rows": (8, 1, 1, 1),
    "tiles": (4, 4, 1, 1),
    "signal": (4, 1, 8, 1),
    "frames": (math.inf, math.inf, 1, 1),
}
"""Layouts of the chunks of a scan: into how many parts each axis is cut.

Whole rows of the scan, tiles along both of its axes, parts of frames, and single frames.
"""

CHUNKED_GIGABYTES = 1 / 8
"""Size of the data of the chunk layouts, at most: 4096 frames, as many tasks of single frames."""


def default_gigabytes() -> float:
    """Return the size that the environment asks for: `UDFDASK_BENCH_GIGABYTES`, by default 2."""
    return float(os.environ.get("UDFDASK_BENCH_GIGABYTES", "2"))


def default_folder() -> Path:
    """Return where files lie: `UDFDASK_BENCH_FOLDER`, by default a temporary folder."""
    fallback = Path(tempfile.gettempdir()) / "udfdask-bench"
    return Path(os.environ.get("UDFDASK_BENCH_FOLDER", fallback))


def counts(layout: Layout, frames: int) -> np.ndarray:
    """Return Poisson counts with a bright disk that is off center, shape (frames, *sig)."""
    rng = np.random.default_rng(7)
    where = np.indices(layout.sig).reshape(layout.sig_dims, -1)
    center = np.array([[0.45 * n] for n in layout.sig])
    distance = np.sqrt(((where - center) ** 2).sum(axis=0)).reshape(layout.sig)
    rate = np.where(distance < 0.25 * min(layout.sig), 3.0, 0.5)
    rate *= layout.mean / rate.mean()
    made = [rng.poisson(rate) for _ in range(min(frames, 64))]
    several = np.stack(made).astype(layout.dtype)
    # drawing every frame anew would take longer than any benchmark
    shifts = range(-(-frames // len(several)))
    return np.concatenate([np.roll(several, 3 * k, axis=-1) for k in shifts])[:frames]


def make_file(layout: Layout, gigabytes: float, folder: Path) -> Path:
    """Return the path of the data set as an .npy file, made if it is not there."""
    shape = layout.shape(gigabytes)
    path = folder / f"{layout.name}-{'x'.join(map(str, shape))}.npy"
    if path.exists():
        return path
    folder.mkdir(parents=True, exist_ok=True)
    unfinished = folder / f"{path.stem}-{os.getpid()}.part"
    whole = np.lib.format.open_memmap(unfinished, "w+", np.dtype(layout.dtype), shape)
    frames = whole.reshape(-1, *layout.sig)
    step = max(1, CHUNK_BYTES // frames[:1].nbytes)
    block = counts(layout, min(step, len(frames)))
    for number, start in enumerate(range(0, len(frames), step)):
        part = frames[start : start + step]
        part[:] = np.roll(block, number, axis=0)[: len(part)]
    whole.flush()
    unfinished.rename(path)
    return path


def opened(path: Path, layout: Layout) -> da.Array:
    """Return the file as a dask array in the chunks of the layout; tasks map it into memory.

    `da.from_array` of a memory map would hash all data for a name, and copy them.
    """
    shape = np.load(path, mmap_mode="r").shape
    return open_file(path, sig_dims=layout.sig_dims, chunks=layout.chunks(shape)).array


@functools.cache
def dataset(name: str) -> da.Array:
    """Return a data set in the size and the folder that the environment asks for."""
    layout = LAYOUTS[name]
    return opened(make_file(layout, default_gigabytes(), default_folder()), layout)


def in_chunks(name: str) -> da.Array:
    """Return a small scan in one of the layouts of `CHUNK_LAYOUTS`."""
    scan = LAYOUTS["scan"]
    path = make_file(scan, min(CHUNKED_GIGABYTES, default_gigabytes()), default_folder())
    shape = np.load(path, mmap_mode="r").shape
    parts = zip(shape, CHUNK_LAYOUTS[name], strict=True)
    chunks = tuple(math.ceil(n / min(n, most)) for n, most in parts)
    return open_file(path, sig_dims=scan.sig_dims, chunks=chunks).array
