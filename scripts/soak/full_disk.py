"""Fill the disk of a cache or a store in the middle of a run, make room, and go on.

    sudo mount -t tmpfs -o size=8m tmpfs /mnt/small
    python scripts/soak/full_disk.py /mnt/small

The folder must be on a disk with 4 to 64 MB of space that nobody else uses. Another file fills the
disk but for 1 MB; the results take more than that.

- A run with a cache returns its results, with a warning.
- `Result.to_zarr` ends with an error and leaves nothing at the path of the store. With room, the
  same call writes the store.

All results are compared with those of a run without files.
"""

from __future__ import annotations

import argparse
import errno
import shutil
import warnings
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np

import udfdask as ud

N_CHUNKS = 32
LEFT = 1_000_000
"""Bytes that the other file leaves."""


class Spectra(ud.UDF):
    """A spectrum of 64 KiB for each frame."""

    def get_result_buffers(self) -> Any:
        """Declare the spectra."""
        return {"spectrum": self.buffer("nav", extra_shape=(8192,), dtype="float64")}

    def process_frame(self, frame: Any) -> None:
        """Make a spectrum of a frame."""
        # random values, which no store can compress
        self.results.spectrum[:] = np.random.default_rng(int(frame.sum())).random(8192)


def result() -> Any:
    """Return the lazy result."""
    x = da.arange(N_CHUNKS * 4, chunks=4).reshape(N_CHUNKS, 2, 2)
    return ud.run_udf(x, Spectra())


def fill(folder: Path) -> Path:
    """Fill the disk but for some space; return the file that does."""
    free = shutil.disk_usage(folder).free
    if not 4 * LEFT < free < 64 * LEFT:
        raise SystemExit(f"{folder} must be on a disk with 4 to 64 MB of space, not {free} bytes")
    file = folder / "filling"
    file.write_bytes(bytes(free - LEFT))
    return file


def expect_full(call: Any) -> str:
    """Return the text of the error of a call that runs out of space, with its notes."""
    try:
        call()
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        return ". ".join([str(error), *getattr(error, "__notes__", ())])
    raise SystemExit("the disk was not filled")


def cache(folder: Path, wanted: Any) -> None:
    """Run with a cache."""
    filling = fill(folder)
    with warnings.catch_warnings(record=True) as caught, ud.cache(folder / "kept", limit="1 GB"):
        warnings.simplefilter("always")
        (done,) = ud.compute(result())
    np.testing.assert_array_equal(done["spectrum"], wanted)
    (text,) = {str(w.message) for w in caught if issubclass(w.category, ud.UDFWarning)}
    print(f"cache: {text}; equal")
    filling.unlink()
    shutil.rmtree(folder / "kept")


def store(folder: Path, wanted: Any) -> None:
    """Write a store."""
    import zarr

    path = folder / "out.zarr"
    filling = fill(folder)
    print("store:", expect_full(lambda: result().to_zarr(path)))
    assert not path.exists()
    filling.unlink()
    result().to_zarr(path)
    np.testing.assert_array_equal(zarr.open_group(path, mode="r")["spectrum"][...], wanted)
    print("store: equal")
    shutil.rmtree(path)


def main() -> None:
    """Run all of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="a folder on a small disk")
    folder = parser.parse_args().folder
    wanted = result().compute(scheduler="sync")["spectrum"]
    for each in (cache, store):
        each(folder, wanted)
        if left := sorted(p.name for p in folder.iterdir()):
            raise SystemExit(f"{each.__name__} left {left}")
    print("all are right")


if __name__ == "__main__":
    main()
