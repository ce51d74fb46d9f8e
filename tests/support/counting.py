"""Data and UDFs that leave a file wherever they are loaded or run: counts across processes."""

import threading
import uuid
import weakref
from collections import Counter
from pathlib import Path

import numpy as np

import udfdask as ud
from udf_zoo import Chain, sig_axes


def note(folder, what):
    """Leave a file with a name of its own."""
    (Path(folder) / f"{what}~{uuid.uuid4().hex}").touch()


def counts(folder):
    """How often each thing has been noted, and forget it."""
    files = list(Path(folder).iterdir())
    for file in files:
        file.unlink()
    return Counter(file.name.partition("~")[0] for file in files)


class CountedData:
    """An array-like whose every read is noted; dask.array.from_array takes it."""

    def __init__(self, data, folder):
        self.data = data
        self.folder = str(folder)
        self.shape, self.dtype, self.ndim = data.shape, data.dtype, data.ndim

    def __getitem__(self, index):
        note(self.folder, "load-" + "-".join(str(i.start) for i in index))
        return self.data[index]

    def __dask_tokenize__(self):
        return ("CountedData", self.folder, self.data)


def counted_block(block, folder, block_info=None):
    place = block_info[0]["chunk-location"]
    note(folder, "load-" + "-".join(map(str, place)))
    return block + 1


class Counted(ud.UDF):
    """Notes each chunk that it starts."""

    label = ""

    def __init__(self, folder, **parameters):
        super().__init__(folder=folder, **parameters)

    def get_task_data(self):
        place = "-".join(map(str, self.meta.coordinates[0]))
        note(self.params.folder, f"run-{self.label}-{place}")
        return {}


class CountedChain(Counted, Chain):
    label = "chain"

    def get_results(self):
        note(self.params.folder, "results")
        return {}


class CountedNav(Counted):
    label = "nav"

    def get_result_buffers(self):
        return {
            "sums": self.buffer("nav", dtype="float64"),
            "means": self.buffer("nav", dtype="float64"),
        }

    def process_tile(self, tile):
        self.results.sums += tile.sum(axis=sig_axes(tile))
        self.results.means += tile.mean(axis=sig_axes(tile))


class Heavy(CountedNav):
    """With a parameter that is a task of the graph."""

    def __init__(self, folder, table):
        super().__init__(folder, table=table)

    def process_tile(self, tile):
        self.results.sums += self.params.table.sum()


class CountedNothing(Counted):
    label = "nothing"

    def get_result_buffers(self):
        return {}

    def process_frame(self, frame):
        pass


class Target:
    """Where da.store writes, from any process."""

    def __init__(self, folder):
        self.folder = str(folder)

    def __setitem__(self, index, value):
        np.save(Path(self.folder) / f"{uuid.uuid4().hex}.npy", value)


class SubtractMean(ud.UDF):
    """Sum of squares of frames after the mean, a parameter, has been subtracted."""

    def __init__(self, mean):
        super().__init__(mean=mean)

    def get_preferred_input_dtype(self):
        return np.float64

    def get_result_buffers(self):
        return {"squares": self.buffer("nav", dtype="float64")}

    def process_frame(self, frame):
        self.results.squares[:] = ((frame - self.params.mean) ** 2).sum()


class MeanFrame(ud.UDF):
    def get_preferred_input_dtype(self):
        return np.float64

    def get_result_buffers(self):
        return {
            "total": self.buffer("sig", dtype="float64", use="private"),
            "count": self.buffer("single", dtype="int64", use="private"),
            "mean": self.buffer("sig", dtype="float64", use="result_only"),
        }

    def process_partition(self, partition):
        self.results.total[:] += partition.sum(axis=0)
        self.results.count[:] += len(partition)

    def merge(self, dest, src):
        dest.total[:] += src.total
        dest.count[:] += src.count

    def get_results(self):
        return {"mean": self.results.total / self.results.count[0]}


class LiveData:
    """An array-like that counts its reads, and the pieces that are alive, in this process."""

    def __init__(self, shape, dtype="float64"):
        self.shape, self.dtype, self.ndim = shape, np.dtype(dtype), len(shape)
        self.lock = threading.Lock()
        self.alive = self.peak = 0
        self.reads = Counter()

    def __getitem__(self, index):
        first = index[0].start
        rows = range(first, index[0].stop)
        piece = np.empty([i.stop - i.start for i in index], dtype=self.dtype)
        piece[...] = np.reshape(rows, (-1, *(1,) * (self.ndim - 1)))
        with self.lock:
            self.reads[tuple(i.start for i in index)] += 1
            self.alive += 1
            self.peak = max(self.peak, self.alive)
        weakref.finalize(piece, self._gone)
        return piece

    def _gone(self):
        with self.lock:
            self.alive -= 1
