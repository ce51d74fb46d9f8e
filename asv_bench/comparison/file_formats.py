"""The same detector counts in files of many formats: how to write, decode and open them."""

from __future__ import annotations

import importlib.util
import itertools
import os
import shutil
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np

from comparison.bare import read_npy
from udfdask.demo import make_recording
from udfdask.io import open_file

LINE, SIG = 64, (256, 256)
STORED = (1, 16, *SIG)
"""Shape of a stored chunk: 2 MiB."""
SHARD = (4, 64, *SIG)

Decode = Callable[[bytes, np.ndarray], object]
"""Decode the bytes of a stored chunk into memory."""


def make_counts(folder: Path, gigabytes: float) -> np.ndarray:
    """Return counts of the demo recording, mapped from an .npy file that is made once."""
    rows = max(4, round(gigabytes * 2**30 / (LINE * np.prod(SIG) * 2) / 4) * 4)
    path = folder / f"counts-{rows}.npy"
    if not path.exists():
        # to draw all frames takes a minute: repeat four lines, shifted along the detector
        few = make_recording((4, LINE), SIG, chunks=(4, 16, -1, -1)).compute()
        counts = np.lib.format.open_memmap(path, "w+", few.dtype, (rows, LINE, *SIG))
        for start in range(0, rows, 4):
            counts[start : start + 4] = np.roll(few, start, axis=-1)[: rows - start]
        counts.flush()
    return np.load(path, mmap_mode="r")


def _in_threads(work: Callable, items: list, threads: int) -> None:
    """Call a function for each item, and for memory that only one thread uses."""
    taken = itertools.chain(items)

    def loop(memory: np.ndarray) -> None:
        for item in taken:
            work(item, memory)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(loop, [np.empty(STORED, np.uint16) for _ in range(threads)]))


@dataclass(frozen=True, kw_only=True)
class Format:
    """A file format with one kind of compression."""

    name: str
    title: str
    package: str = "numpy"

    def missing_package(self) -> bool:
        return any(importlib.util.find_spec(name) is None for name in self.package.split())

    def make(self, counts: np.ndarray, folder: Path) -> Path:
        """Return the path of the counts in this format, written if the file does not exist."""
        path = folder / f"{self.name}-{len(counts)}{self.suffix}"
        if not path.exists():
            unfinished = path.with_name(f"unfinished-{path.name}")
            shutil.rmtree(unfinished, ignore_errors=True)
            self.write(counts, unfinished)
            unfinished.rename(path)
        return path

    def by_udfdask(self, path: Path) -> da.Array:
        return open_file(path).array


@dataclass(frozen=True, kw_only=True)
class Zarr(Format):
    """A zarr store."""

    package: str = "zarr numcodecs"
    suffix = ".zarr"
    version: int
    stored: tuple[int, ...] = STORED
    compressor: Callable[[], Any]
    """Make the compressor for zarr."""
    decoder: Callable[[], Any]
    """Make the same compressor of numcodecs."""
    shards: tuple[int, ...] | None = None

    def write(self, counts: np.ndarray, path: Path) -> None:
        import zarr

        array = zarr.create_array(
            path,
            shape=counts.shape,
            chunks=self.stored,
            dtype=counts.dtype,
            compressors=self.compressor(),
            shards=self.shards,
            zarr_format=self.version,
        )
        rows = (self.shards or self.stored)[0]
        for start in range(0, len(counts), rows):
            array[start : start + rows] = counts[start : start + rows]

    def decoding(self, path: Path, threads: int) -> Callable[[], None]:
        files = sorted(p for p in path.rglob("*") if p.is_file())
        stored = [p.read_bytes() for p in files if not p.name.startswith((".z", "zarr"))]
        chunks = [chunk for part in stored for chunk in self._chunks(part)]
        decoder = self.decoder()
        nbytes = int(np.prod(self.stored)) * 2

        def work(chunk: bytes, memory: np.ndarray) -> None:
            decoder.decode(chunk, out=memory if memory.nbytes == nbytes else None)

        return lambda: _in_threads(work, chunks, threads)

    def _chunks(self, stored: bytes) -> Iterator[bytes]:
        """Yield the chunks in a file: itself, or those that the index at its end lists."""
        if self.shards is None:
            yield stored
            return
        count = int(np.prod(self.shards) // np.prod(self.stored))
        index = np.frombuffer(stored[-16 * count - 4 : -4], "<u8").reshape(-1, 2).tolist()
        for start, length in index:
            if start < len(stored):
                yield stored[start : start + length]

    def by_dask(self, path: Path) -> da.Array:
        return da.from_zarr(str(path))

    def by_libertem(self, path: Path) -> tuple[str, Callable]:
        return "lazy", lambda ctx: ctx.load("dask", self.by_dask(path), sig_dims=2)


@dataclass(frozen=True, kw_only=True)
class HDF5(Format):
    """A dataset of an HDF5 file."""

    package: str = "h5py"
    suffix = ".h5"
    options: Callable[[], dict[str, Any]] = dict
    """Make the options of `create_dataset`."""
    stored: tuple[int, ...] | None = STORED
    decode: Callable[[], Decode] | None = None
    """Make the decoder; None without compression."""

    def write(self, counts: np.ndarray, path: Path) -> None:
        import h5py

        with h5py.File(path, "w") as file:
            made = file.create_dataset(
                "data", counts.shape, counts.dtype, chunks=self.stored, **self.options()
            )
            for row, lines in enumerate(counts):
                made[row] = lines

    def decoding(self, path: Path, threads: int) -> Callable[[], None]:
        import h5py

        if self.stored is None:
            return lambda: _read_file(path, threads)
        with h5py.File(path) as file:
            data = file["data"].id
            infos = [data.get_chunk_info(n) for n in range(data.get_num_chunks())]
            if self.decode is None:
                places = [(info.byte_offset, info.size) for info in infos]
                return lambda: _read_places(path, places, threads)
            chunks = [data.read_direct_chunk(info.chunk_offset)[1] for info in infos]
        return lambda: _in_threads(self.decode(), chunks, threads)

    def by_dask(self, path: Path) -> da.Array:
        import h5py

        data = h5py.File(path)["data"]
        return da.from_array(data, chunks="auto" if self.stored is None else data.chunks)

    def by_libertem(self, path: Path) -> tuple[str, Callable]:
        return "threads", lambda ctx: ctx.load("hdf5", path=str(path), ds_path="/data")


@dataclass(frozen=True, kw_only=True)
class Plain(Format):
    """An .npy file."""

    suffix = ".npy"

    def write(self, counts: np.ndarray, path: Path) -> None:
        with path.open("wb") as file:
            np.save(file, counts)

    def decoding(self, path: Path, threads: int) -> Callable[[], None]:
        return lambda: read_npy(path, threads)

    def by_dask(self, path: Path) -> da.Array:
        mapped = np.load(path, mmap_mode="r")
        return da.from_array(mapped, name=False)

    def by_libertem(self, path: Path) -> tuple[str, Callable]:
        return "threads", lambda ctx: ctx.load("npy", path=str(path))


@dataclass(frozen=True, kw_only=True)
class Raw(Format):
    """A file of frames without a description."""

    suffix = ".raw"

    def write(self, counts: np.ndarray, path: Path) -> None:
        counts.tofile(path)

    def decoding(self, path: Path, threads: int) -> Callable[[], None]:
        return lambda: _read_file(path, threads)

    def by_udfdask(self, path: Path) -> da.Array:
        return open_file(path, nav_shape=self._nav(path), sig_shape=SIG, dtype="<u2").array

    def by_dask(self, path: Path) -> da.Array:
        mapped = np.memmap(path, "<u2", "r", shape=(*self._nav(path), *SIG))
        return da.from_array(mapped, name=False)

    def by_libertem(self, path: Path) -> tuple[str, Callable]:
        options = {"dtype": "<u2", "nav_shape": self._nav(path), "sig_shape": SIG}
        return "threads", lambda ctx: ctx.load("raw", path=str(path), **options)

    def _nav(self, path: Path) -> tuple[int, int]:
        return path.stat().st_size // (LINE * 2 * int(np.prod(SIG))), LINE


@dataclass(frozen=True, kw_only=True)
class Mib(Format):
    """Frames of Merlin: big-endian, each after a header of 384 bytes."""

    package: str = "hyperspy rsciio"
    suffix = ".mib"
    frame = np.dtype([("header", "S384"), ("values", ">u2", SIG)])

    def make(self, counts: np.ndarray, folder: Path) -> Path:
        path = super().make(counts, folder)
        lines = {"in Acquisition": len(counts) * LINE, "per Trigger": LINE}
        described = [f"Frames {what} (Number):\t{number}" for what, number in lines.items()]
        path.with_suffix(".hdr").write_text("\n".join(["HDR,\t", *described, "End\t", ""]))
        return path

    def write(self, counts: np.ndarray, path: Path) -> None:
        with path.open("wb") as file:
            for row, line in enumerate(counts):
                frames = np.zeros(LINE, self.frame)
                frames["values"] = line
                frames["header"] = [self._header(row * LINE + n) for n in range(LINE)]
                frames.tofile(file)

    def _header(self, number: int) -> bytes:
        size = ",".join(f"{n:04}" for n in reversed(SIG))
        head = f"MQ1,{number + 1:06},00384,01,{size},U16,   1x1,01,2026-01-01 12:00:00.0,0.001,0,"
        return f"{head}2026-01-01T12:00:00.{number:09}Z,100000ns,12,".encode()

    def decoding(self, path: Path, threads: int) -> Callable[[], None]:
        return lambda: _read_file(path, threads)

    def by_dask(self, path: Path) -> da.Array:
        frames = np.memmap(path, self.frame, "r")["values"]
        return da.from_array(frames.reshape(-1, LINE, *SIG), name=False)

    def by_libertem(self, path: Path) -> tuple[str, Callable]:
        options = {"nav_shape": (path.stat().st_size // self.frame.itemsize // LINE, LINE)}
        return "threads", lambda ctx: ctx.load("mib", path=str(path), disable_glob=True, **options)


def _read_file(path: Path, threads: int) -> None:
    """Read a file in parts of a chunk."""
    step = int(np.prod(STORED)) * 2
    size = path.stat().st_size
    _read_places(path, [(at, min(step, size - at)) for at in range(0, size, step)], threads)


def _read_places(path: Path, places: list[tuple[int, int]], threads: int) -> None:
    """Read parts of a file, each into memory that is used again."""
    with path.open("rb") as file:

        def work(place: tuple[int, int], memory: np.ndarray) -> None:
            os.preadv(file.fileno(), [memory.reshape(-1).view("u1")[: place[1]]], place[0])

        _in_threads(work, places, threads)


def _numcodecs(name: str, **options: Any) -> Any:
    """Return a compressor of numcodecs."""
    import numcodecs

    return getattr(numcodecs, name)(**options)


def _zarr3(name: str, **options: Any) -> Any:
    """Return a compressor of zarr format 3."""
    import zarr.codecs

    return getattr(zarr.codecs, name)(**options)


def _plugin(name: str, **options: Any) -> Any:
    """Return the options of `create_dataset` for a filter of hdf5plugin."""
    import hdf5plugin

    return dict(getattr(hdf5plugin, name)(**options))


def _unshuffle(values: bytes, memory: np.ndarray) -> None:
    """Put the bytes of values together: the file has all first bytes, then all second bytes."""
    pairs = np.frombuffer(values, np.uint8).reshape(2, -1)
    memory.reshape(-1).view(np.uint8).reshape(-1, 2)[:] = pairs.T


def _gunzip() -> Decode:
    return lambda chunk, memory: zlib.decompress(chunk, bufsize=memory.nbytes)


def _gunzip_shuffled() -> Decode:
    return lambda chunk, memory: _unshuffle(zlib.decompress(chunk, bufsize=memory.nbytes), memory)


def _decode_with(name: str, **options: Any) -> Decode:
    codec = _numcodecs(name, **options)
    return lambda chunk, memory: codec.decode(chunk, out=memory)


def _imagecodecs(name: str) -> Decode:
    """Return a decoder of imagecodecs."""
    import imagecodecs

    decode = getattr(imagecodecs, name)
    return lambda chunk, memory: decode(chunk, out=memory.reshape(-1).view(np.uint8))


def _bitshuffle() -> Decode:
    """Return the decoder in hdf5plugin's library, called without HDF5."""
    import ctypes

    import hdf5plugin

    library = ctypes.CDLL(str(Path(hdf5plugin.__file__).parent / "plugins" / "libh5bshuf.so"))
    decompress = library.bshuf_decompress_lz4
    decompress.argtypes = [ctypes.c_char_p, ctypes.c_void_p, *[ctypes.c_size_t] * 3]
    decompress.restype = ctypes.c_int64

    def decode(chunk: bytes, memory: np.ndarray) -> None:
        size = int.from_bytes(chunk[:8], "big")
        block = int.from_bytes(chunk[8:12], "big") // 2
        # the blocks come after 12 bytes
        assert decompress(chunk[12:], memory.ctypes.data, size // 2, 2, block) > 0

    return decode


BLOSC = partial(_numcodecs, "Blosc", cname="lz4", clevel=5, shuffle=1)
ZSTD = partial(_numcodecs, "Zstd", level=3)
ZSTD3 = partial(_zarr3, "ZstdCodec", level=3)
BLOSC3 = partial(_zarr3, "BloscCodec", cname="lz4", clevel=5, shuffle="shuffle", typesize=2)

FORMATS: list[Any] = [
    Zarr(name="zarr2-lz4", title="zarr 2, blosc lz4", version=2, compressor=BLOSC, decoder=BLOSC),
    Zarr(name="zarr2-zstd", title="zarr 2, zstd", version=2, compressor=ZSTD, decoder=ZSTD),
    Zarr(name="zarr3-lz4", title="zarr 3, blosc lz4", version=3, compressor=BLOSC3, decoder=BLOSC),
    Zarr(name="zarr3-zstd", title="zarr 3, zstd", version=3, compressor=ZSTD3, decoder=ZSTD),
    Zarr(
        name="zarr3-sharded",
        title="zarr 3, zstd, shards",
        version=3,
        compressor=ZSTD3,
        decoder=ZSTD,
        shards=SHARD,
    ),
    HDF5(
        name="hdf5-gzip",
        title="HDF5, gzip",
        options=lambda: {"compression": "gzip", "compression_opts": 1},
        decode=_gunzip,
    ),
    HDF5(
        name="hdf5-shuffle-gzip",
        title="HDF5, shuffle and gzip",
        options=lambda: {"compression": "gzip", "compression_opts": 1, "shuffle": True},
        decode=_gunzip_shuffled,
    ),
    HDF5(
        name="hdf5-lzf",
        title="HDF5, lzf",
        options=lambda: {"compression": "lzf"},
        package="h5py imagecodecs",
        decode=partial(_imagecodecs, "lzf_decode"),
    ),
    HDF5(
        name="hdf5-bitshuffle",
        title="HDF5, bitshuffle and lz4",
        options=partial(_plugin, "Bitshuffle", cname="lz4"),
        package="h5py hdf5plugin",
        decode=_bitshuffle,
    ),
    HDF5(
        name="hdf5-bitshuffle-frames",
        title="HDF5, bitshuffle and lz4, one frame in a chunk",
        options=partial(_plugin, "Bitshuffle", cname="lz4"),
        package="h5py hdf5plugin",
        stored=(1, 1, *SIG),
        decode=_bitshuffle,
    ),
    HDF5(
        name="hdf5-blosc",
        title="HDF5, blosc lz4",
        options=partial(_plugin, "Blosc", cname="lz4"),
        package="h5py hdf5plugin numcodecs",
        decode=partial(_decode_with, "Blosc"),
    ),
    HDF5(
        name="hdf5-zstd",
        title="HDF5, zstd",
        options=partial(_plugin, "Zstd"),
        package="h5py hdf5plugin numcodecs",
        decode=partial(_decode_with, "Zstd"),
    ),
    HDF5(name="hdf5-chunked", title="HDF5, chunks without compression"),
    HDF5(name="hdf5-contiguous", title="HDF5, contiguous", stored=None),
    Plain(name="npy", title=".npy"),
    Raw(name="raw", title="raw"),
    Mib(name="mib", title=".mib"),
]
