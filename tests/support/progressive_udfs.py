"""UDFs for tests of progressive runs; importable on workers."""

import os
import signal
import threading
from pathlib import Path

import numpy as np

import udfdask as ud
from aux_udfs import SeenByMergeAll
from counting import note
from making import LATE, wait_until
from udf_zoo import MergeAllNav, Native, NavSums


class Scaled(Native):
    """One parameter that shows in rows, and one in merges; notes each chunk that it starts."""

    def __init__(self, factor, step=0, folder=None):
        super().__init__(factor=factor, step=step, folder=folder)

    def get_result_buffers(self):
        return {
            "factor": self.buffer("nav", dtype="int64"),
            "steps": self.buffer("single", dtype="int64"),
        }

    def process_partition(self, partition):
        if self.params.folder is not None:
            note(self.params.folder, "run")
        self.results.factor[:] = self.params.factor

    def merge(self, dest, src):
        dest.factor[:] = src.factor
        dest.steps[:] += self.params.step


class WithTable(ud.UDF):
    """A parameter that may be a dask array."""

    def get_result_buffers(self):
        return {
            "v": self.buffer("nav", dtype="float64"),
            "total": self.buffer("single", dtype="float64"),
        }

    def process_frame(self, frame):
        self.results.v[:] = frame.sum() * self.params.table[0]

    def merge(self, dest, src):
        dest.v[:] = src.v
        dest.total[:] += src.v.sum() + self.params.table[-1]


class ParameterDecides(ud.UDF):
    def __init__(self, n, dtype="float32"):
        super().__init__(n=n, dtype=dtype)

    def get_preferred_input_dtype(self):
        return self.params.dtype

    def get_result_buffers(self):
        return {"v": self.buffer("nav", extra_shape=(self.params.n,), dtype="float64")}

    def process_frame(self, frame):
        self.results.v[:] = frame.sum()


class MaskSeen(ud.UDF):
    def get_result_buffers(self):
        return {
            "before": self.buffer("nav", dtype="int64"),
            "seen": self.buffer("single", dtype="int64", use="result_only"),
            "chunks": self.buffer("single", dtype="int64"),
            "map": self.buffer(
                "single", extra_shape=self.meta.dataset_shape.nav, dtype="bool", use="result_only"
            ),
        }

    def process_frame(self, frame):
        pass

    def merge(self, dest, src):
        mask = self.meta.get_valid_nav_mask()
        full = self.meta.get_valid_nav_mask(full_nav=True).reshape(self.meta.dataset_shape.nav)
        assert mask.sum() == full.sum()
        assert not full[tuple(self.meta.coordinates.T)].any()
        dest.before[:] = mask.sum()
        dest.chunks[:] += 1

    def get_results(self):
        mask = self.meta.get_valid_nav_mask()
        return {"seen": mask.sum(), "map": self.meta.get_valid_nav_mask(full_nav=True)}


class Dose(ud.UDF):
    def __init__(self, dose, other=0):
        super().__init__(dose=dose, other=other)

    def get_result_buffers(self):
        return {
            "dose": self.buffer("nav", dtype="float64"),
            "again": self.buffer("nav", dtype="float64", use="result_only"),
        }

    def process_frame(self, frame):
        self.results.dose[:] = self.params.dose

    def get_results(self):
        return {"again": self.params.dose}


class SeenByMergeAllOnly(SeenByMergeAll):
    merge = ud.UDF.merge


class OnlyMergeAll(MergeAllNav):
    split_every = 3
    merge = ud.UDF.merge


class MedianOnce(NavSums):
    split_every = False

    def get_result_buffers(self):
        return {**super().get_result_buffers(), "median": self.buffer("single", dtype="float64")}

    def merge_all(self, ordered_results):
        sums = np.concatenate([p.sums for p in ordered_results.values()])
        return {"sums": sums, "median": np.median(sums)}


class MeanOfMeans(NavSums):
    """merge_all, not associative, in a tree: has to be refused."""

    split_every = 3

    def get_result_buffers(self):
        return {"mean": self.buffer("single", dtype="float64")}

    def process_tile(self, tile):
        self.results.mean += tile.mean() + self.meta.coordinates[0, 0] ** 2

    def merge_all(self, ordered_results):
        return {"mean": np.mean([p.mean for p in ordered_results.values()])}


class Order(Native):
    def get_result_buffers(self):
        return {
            "place": self.buffer("nav", dtype="int64"),
            "hash": self.buffer("single", dtype="int64"),
        }

    def process_partition(self, partition):
        self.results.place[:] = self.meta.coordinates[:, 0] + 1
        self.results.hash[:] = self.meta.coordinates[0, 0] + 1

    def merge(self, dest, src):
        dest.place[:] += src.place
        dest.hash[:] = dest.hash * 31 % 1_000_003 + src.hash


GATES = {}
"""Events by name, for UDFs in this process."""


class Gated(Order):
    """Notes the first row of each chunk that starts; some wait until they are let through."""

    def __init__(self, name, closed=()):
        super().__init__(name=name, closed=closed)

    def process_partition(self, partition):
        gates = GATES[self.params.name]
        row = int(self.meta.coordinates[0, 0])
        gates.started.append(row)
        gates.some.release()
        if row in self.params.closed:
            assert gates.open.wait(LATE)
        super().process_partition(partition)


class GatedAnyOrder(Gated):
    merge_assigns_nav = True

    def merge(self, dest, src):
        dest.place[:] = src.place
        dest.hash[:] += src.hash


class Sees(Gated):
    def __init__(self, name, value, closed=()):
        ud.UDF.__init__(self, name=name, value=value, closed=closed)

    def process_partition(self, partition):
        super().process_partition(partition)
        self.results.place[:] = self.params.value


class Gates:
    def __init__(self, name):
        GATES[name] = self
        self.name = name
        self.open = threading.Event()
        self.started = []
        self.some = threading.Semaphore(0)

    def wait_for(self, count):
        while len(self.started) < count:
            assert self.some.acquire(timeout=LATE)


class CountsResults(NavSums):
    def __init__(self, folder):
        super().__init__(folder=str(folder))

    def get_results(self):
        note(self.params.folder, "results")
        return {"sums": self.results.sums + 1}


class Slow(NavSums):
    """Notes each chunk; waits for a file, so that nothing is over before the test wants it."""

    def __init__(self, folder, row):
        super().__init__(folder=str(folder), row=row)

    def process_tile(self, tile):
        note(self.params.folder, "run")
        if self.params.row in self.meta.coordinates[:, 0]:
            self.stop()
        super().process_tile(tile)

    def stop(self):
        wait_until((Path(self.params.folder) / "go").exists)


class Interrupts(Slow):
    """Somebody presses Ctrl-C while a chunk is processed."""

    def stop(self):
        os.kill(os.getpid(), signal.SIGINT)
