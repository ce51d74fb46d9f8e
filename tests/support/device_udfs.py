"""What CuPy is in a test, and UDFs for it and for any backend: the same numbers on both."""

import contextlib

import numpy as np
import pytest

import udfdask as ud
from stand_in import numpy_standing_in_for_cupy
from udfdask.backends.device import n_devices

MODULES = ["stand-in", pytest.param("cupy", marks=pytest.mark.gpu)]


@contextlib.contextmanager
def cupy_is(what):
    """Yield the module CuPy; skip the test where it is to be the real one and there is none."""
    if what == "stand-in":
        with numpy_standing_in_for_cupy() as module:
            yield module
        return
    module = pytest.importorskip("cupy", reason="CuPy is not installed")
    if not n_devices():
        pytest.skip("there is no CUDA device")
    yield module


def sent(cupy, lazy):
    meta = cupy.empty((0,) * lazy.ndim, dtype=lazy.dtype.newbyteorder("="))
    return lazy.map_blocks(cupy.asarray, meta=meta)


class Offers(ud.UDF):
    def __init__(self, offers=("cupy", "numpy"), **more):
        super().__init__(offers=offers, **more)

    def get_backends(self):
        return tuple(self.params.offers)


class Both(Offers):
    """Rows on the device and on the host, a frame, and a number, by tiles."""

    merge_assigns_nav = True

    def __init__(self, offers=("numpy", "cupy"), native=False):
        super().__init__(offers=offers, native=native)

    def get_preferred_input_dtype(self):
        return self.USE_NATIVE_DTYPE if self.params.native else np.float32

    def get_result_buffers(self):
        return {
            "rows": self.buffer("nav", dtype="float64", where="device"),
            "two": self.buffer("nav", extra_shape=2, dtype="float64"),
            "frame": self.buffer("sig", dtype="float64", where="device"),
            "most": self.buffer("single", dtype="float64", where="device"),
            "count": self.buffer("single", dtype="int64"),
        }

    def preprocess(self):
        self.results.most[:] = -1

    def process_tile(self, tile):
        xp, results = self.xp, self.results
        assert isinstance(tile, xp.ndarray)
        axes = tuple(range(1, tile.ndim))
        sums = xp.sum(tile, axis=axes, dtype="float64")
        results.rows[:] += sums
        results.two[:, 0] += self.forbuf(sums, results.two[:, 0])
        results.two[:, 1] += self.forbuf(2 * sums, results.two[:, 1])
        results.frame[:] += xp.sum(tile, axis=0, dtype="float64")
        if tile.size:
            results.most[:] = xp.maximum(results.most, tile.max())
        if self.meta.tiling_scheme_idx == 0:
            results.count += len(tile)

    def merge(self, dest, src):
        dest.rows[:] = src.rows
        dest.two[:] = src.two
        dest.frame[:] += src.frame
        dest.most[:] = self.xp.maximum(dest.most, src.most)
        dest.count[:] += src.count


class Parts(Both):
    """The same where each signal chunk has a task of its own."""

    promises = ud.Promises(adds_signal_parts=True)

    def get_result_buffers(self):
        buffers = super().get_result_buffers()
        return {name: buffers[name] for name in ("rows", "two", "frame")}

    def preprocess(self):
        pass

    def process_tile(self, tile):
        sums = self.xp.sum(tile, axis=(1, 2), dtype="float64")
        self.results.rows[:] += sums
        self.results.two[:, 1] += self.forbuf(sums, self.results.two[:, 1])
        self.results.frame[:] += self.xp.sum(tile, axis=0, dtype="float64")

    def merge(self, dest, src):
        dest.rows[:] = src.rows
        dest.two[:] = src.two
        dest.frame[:] += src.frame


class Frames(Offers):
    def get_result_buffers(self):
        return {"peak": self.buffer("nav", dtype="float32", where="device")}

    def process_frame(self, frame):
        self.results.peak[:] = frame.max()


class Partitions(Offers):
    """By partitions, with a merge_all, and a get_results that computes on the device."""

    def get_result_buffers(self):
        return {
            "total": self.buffer("sig", dtype="float64", where="device"),
            "mean": self.buffer("sig", dtype="float64", use="result_only"),
            "n": self.buffer("single", dtype="int64", where="device"),
        }

    def process_partition(self, partition):
        self.results.total[:] += partition.sum(axis=0, dtype="float64")
        self.results.n[:] += len(partition)

    def merge_all(self, ordered_results):
        parts = list(ordered_results.values())
        return {
            "total": self.xp.stack([p.total for p in parts]).sum(axis=0),
            "n": self.xp.stack([p.n for p in parts]).sum(axis=0),
        }

    def get_results(self):
        total, n = self.results.total, self.results.n
        assert type(total) is type(n) is np.ndarray
        return {"mean": self.xp.asarray(total) / self.xp.asarray(np.maximum(n, 1))}
