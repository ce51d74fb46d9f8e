"""The number of tasks that `explain` gives is the number that runs, on each scheduler.

Loading, elementwise operations and UDFs are one task for each chunk.
"""

import dask.array as da
import numpy as np
import pytest
from dask.callbacks import Callback

import udfdask as ud
from task_record import TaskRecord, take
from udfdask.udfs import SumSigUDF, SumUDF

N, CHUNKS = 16, (2, 2, 3, 4)
DATA = np.arange(8 * 8 * 3 * 4, dtype="uint16").reshape(8, 8, 3, 4)


class Lookup:
    """An array-like that is read block by block; `from_array` keeps it in a task of its own."""

    shape, dtype, ndim = DATA.shape, DATA.dtype, DATA.ndim

    def __getitem__(self, index):
        return DATA[index]


SOURCES = {
    "in memory": lambda: da.from_array(DATA, chunks=CHUNKS),
    "array-like": lambda: da.from_array(Lookup(), chunks=CHUNKS),
    "generated": lambda: da.ones(DATA.shape, chunks=CHUNKS, dtype="uint16"),
    "persisted": lambda: da.from_array(DATA, chunks=CHUNKS).persist(scheduler="synchronous"),
}
CHAINS = {
    "nothing": lambda x: x,
    "one": lambda x: x + 1,
    "two": lambda x: (x + 1).astype("float32"),
    "blocks": lambda x: x.map_blocks(np.sqrt, meta=np.empty((0,) * 4, "float32")),
    "three": lambda x: da.clip(x.astype("int64") - 5, 0, 60) * 2,
    "twice": lambda x: x * x + 1,
    "other": lambda x: x - da.from_array(DATA[::-1].copy(), chunks=CHUNKS),
    "frame": lambda x: (
        (x - da.from_array(DATA[0, 0], chunks=(3, 4)))
        * da.from_array(DATA[:, :1, :1, :1], chunks=(2, 1, 1, 1))
    ),
}
RUNS = {
    "roi": (da.from_array(DATA, chunks=CHUNKS) + 1, {"roi": np.s_[:5, 3:]}),
    "signal chunks": (da.from_array(DATA, chunks=(2, 2, 3, 2)) + 1, {}),
    "slices": (da.from_array(DATA, chunks=CHUNKS)[1:, ::2], {}),
    "rechunk": (da.from_array(DATA, chunks=3).rechunk(CHUNKS), {}),
    "joined chunks": (da.from_array(DATA, chunks=(1, 1, 3, 4)) + 1, {"merge_small": "1 kB"}),
    "shifts": (da.from_array(DATA, chunks=CHUNKS) + 1, {"descan": np.ones((8, 8, 2), int)}),
    "one chunk": (da.from_array(DATA, chunks=-1) + 1, {}),
    "means": (DATA - da.from_array(DATA, chunks=CHUNKS).mean(axis=(0, 1)), {}),
}


class Counted(Callback):
    """Counts the tasks that a scheduler of one machine runs."""

    def __init__(self):
        super().__init__(pretask=self.count)
        self.n = 0

    def count(self, *_):
        self.n += 1


# Frisky has no plugins that count tasks
COUNTED = pytest.mark.parametrize(
    "options", ["synchronous", "threads", "processes", "distributed"], indirect=True
)


def check(results, n_tasks, n_data, options):
    """A cluster runs all tasks, a scheduler of one machine those that do not only hold data."""
    assert results[0].explain().n_tasks == n_tasks
    client = options["scheduler"]
    if isinstance(client, str):
        with Counted() as local:
            done = ud.compute(*results, **options)
        assert local.n == n_tasks - n_data
    else:
        client.register_plugin(TaskRecord())
        try:
            done = ud.compute(*results, **options)
            assert len(client.run_on_scheduler(take)) == n_tasks
        finally:
            client.unregister_scheduler_plugin(TaskRecord.name)
    for result, values in zip(results, done, strict=True):
        wanted = result.compute(scheduler="synchronous", optimize_graph=False)
        np.testing.assert_array_equal(values["intensity"], wanted["intensity"])


@COUNTED
@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize("source", SOURCES)
def test_one_task_loads_and_processes_a_chunk(source, chain, options):
    results = ud.run_udf(CHAINS[chain](SOURCES[source]()), [SumUDF(), SumSigUDF()])
    n_data = source == "array-like"
    # chunks, their merges, and one that assembles each result
    check(results, N + 3 + 2 + n_data, n_data, options)


@COUNTED
@pytest.mark.parametrize("run", RUNS)
def test_explain_counts_what_runs(run, options):
    array, given = RUNS[run]
    results = ud.run_udf(array, [SumUDF(), SumSigUDF()], **given)
    n_data = 18 if run == "rechunk" else 0  # several tasks read each block
    check(results, results[0].explain().n_tasks, n_data, options)
