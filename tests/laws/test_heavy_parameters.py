"""Law 7 on clusters: heavy parameters travel once, and are made again when workers die."""

import functools
import os
import pickle
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import dask
import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from counting import counts, note
from making import LATE
from udfdask.plan.plan import make_plan
from udfdask.udfs import AutoUDF, SumUDF

distributed = pytest.importorskip("distributed", reason="distributed is an extra")

N_CHUNKS = 40
SIZE = 5_000_000


class Table:
    """5 MB that note how often they are pickled."""

    def __init__(self, folder, values=None):
        self.folder = str(folder)
        self.values = np.full(SIZE // 8, 3.0) if values is None else values
        self.nbytes = self.values.nbytes

    def __reduce__(self):
        note(self.folder, "pickled")
        return (Table, (self.folder, self.values))

    def __dask_tokenize__(self):
        return ("Table", self.folder)


class Looked(ud.UDF):
    """Adds a value of a table to the sums of frames; counts them."""

    def __init__(self, table):
        super().__init__(table=table)

    def get_result_buffers(self):
        return {
            "sums": self.buffer(kind="nav", dtype="float64"),
            "frames": self.buffer(kind="single", dtype="int64"),
        }

    def process_frame(self, frame):
        self.results.sums[:] = frame.sum() + self.params.table.values[-1]
        self.results.frames += 1

    def merge(self, dest, src):
        dest.sums[:] = src.sums
        dest.frames += src.frames

    merge_assigns_nav = True


class Target:
    """Where da.store writes."""

    def __setitem__(self, index, value):
        assert (value == 4 + 3).all()


def persisted(res, client):
    return dask.persist(res, scheduler=client)[0]["sums"].compute(scheduler=client)


def iterated(res, client):
    array, udf = res
    *_, last = ud.run_udf_iter(array, udf, scheduler=client)
    return last.buffers[0]["sums"]


def stored(res, client):
    da.store([res["sums"], res["frames"]], [Target(), {}], lock=False, scheduler=client)


def as_dataset(res, client):
    pytest.importorskip("xarray", reason="xarray is an extra")
    return res.to_xarray()["sums"].compute(scheduler=client).values


DOORS = {
    "ud.compute": lambda res, client: ud.compute(res, scheduler=client)[0]["sums"],
    "Result.compute": lambda res, client: res.compute(scheduler=client)["sums"],
    "ud.persist": lambda res, client: ud.persist(res, scheduler=client)[0]["sums"].compute(
        scheduler=client
    ),
    "dask.compute": lambda res, client: dask.compute(res, scheduler=client)[0]["sums"],
    "dask.persist": persisted,
    "one array": lambda res, client: res["sums"].compute(scheduler=client),
    "client.compute": lambda res, client: client.compute([res])[0].result()["sums"],
    "da.store": stored,
    "xarray": as_dataset,
    "run_udf_iter": iterated,
}


@pytest.mark.always
@pytest.mark.parametrize("door", DOORS)
def test_a_heavy_parameter_travels_once(door, client, tmp_path):
    """To the scheduler, to a worker, and from there to the other one; not with 40 tasks."""
    x = da.ones((N_CHUNKS, 1, 2, 2), chunks=(1, 1, 2, 2))
    udf = Looked(Table(tmp_path))
    given = (x, udf) if door == "run_udf_iter" else ud.run_udf(x, udf)
    counts(tmp_path)
    sums = DOORS[door](given, client)
    if sums is not None:
        np.testing.assert_array_equal(sums, np.full((N_CHUNKS, 1), 7.0))
    # in the graph, to the worker that has the task, and from there to the other worker
    # (a copy more each time that a cluster moves a task which it has sent already)
    assert 1 <= counts(tmp_path)["pickled"] <= 6


def test_a_light_parameter_travels_with_its_tasks(client):
    """Nothing to fetch for it."""
    x = da.ones((4, 1, 2, 2), chunks=(1, 1, 2, 2))
    layers = ud.run_udf(x, SumUDF())["intensity"].dask.layers
    assert not any(name.startswith("recipe-") for name in layers)


def test_threads_never_pickle_it(tmp_path):
    x = da.ones((N_CHUNKS, 1, 2, 2), chunks=(1, 1, 2, 2))
    result = ud.run_udf(x, Looked(Table(tmp_path)))
    counts(tmp_path)
    assert (result.compute(scheduler="threads")["sums"] == 7).all()
    assert not counts(tmp_path)


def test_new_values_of_a_heavy_parameter_reach_new_chunks(client, tmp_path):
    """The first chunks have the old ones, the last ones the new ones, each sent once."""
    x = da.ones((N_CHUNKS, 1, 2, 2), chunks=(1, 1, 2, 2))
    snapshots = ud.run_udf_iter(x, Looked(Table(tmp_path)), scheduler=client)
    next(snapshots)
    counts(tmp_path)
    snapshots.update_parameters([{"table": Table(tmp_path, np.full(SIZE // 8, 5.0))}])
    *_, last = snapshots
    sums = last.buffers[0]["sums"][:, 0]
    assert sums[0] == 7
    assert sums[-1] == 9
    assert set(sums) == {7, 9}
    assert last.buffers[0]["frames"] == N_CHUNKS
    # measured, sent and fetched as at the start; redeclared when it is updated
    assert counts(tmp_path)["pickled"] <= 8


class Gated(Looked):
    """Says which process runs it; after some chunks it waits until a file is there."""

    def __init__(self, table, folder):
        ud.UDF.__init__(self, table=table, folder=folder)

    def process_frame(self, frame):
        super().process_frame(frame)
        folder = Path(self.params.folder)
        (folder / f"ran-{os.getpid()}-{self.meta.coordinates[0, 0]}").touch()
        while self.meta.coordinates[0, 0] % 4 == 3 and not (folder / "go").exists():
            time.sleep(0.01)  # the gate, opened by the test


@pytest.fixture(scope="module")
def mortal():
    """A client of a cluster of two processes, which are started again when they are killed."""
    # 15 s after a worker is lost, the cluster drops it if no worker has its name just then: a
    # worker that the next test has killed again would never come back
    patience = {"distributed.deploy.lost-worker-timeout": "1 hour"}
    with (
        dask.config.set(patience),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as made,
    ):
        yield made


def last_snapshot(x, udf, client):
    *_, last = ud.run_udf_iter(x, udf, scheduler=client)
    return last.buffers[0]


ROUTES = {
    "ud.compute": lambda x, udf, client: ud.compute(ud.run_udf(x, udf), scheduler=client)[0],
    "Result.compute": lambda x, udf, client: ud.run_udf(x, udf).compute(scheduler=client),
    "run_udf_iter": last_snapshot,
}


@pytest.mark.full
@pytest.mark.parametrize("route", ROUTES)
def test_workers_that_hold_it_are_killed(route, mortal, tmp_path):
    """All of them, so that no copy is left."""
    (tmp_path / "pickled").mkdir()
    (tmp_path / "ran").mkdir()
    x = da.ones((N_CHUNKS, 1, 2, 2), chunks=(1, 1, 2, 2))
    udf = Gated(Table(tmp_path / "pickled"), str(tmp_path / "ran"))
    pool = ThreadPoolExecutor(1)
    run = pool.submit(ROUTES[route], x, udf, mortal)
    pool.shutdown(wait=False)
    mortal.wait_for_workers(2)
    pids = set(mortal.run(os.getpid).values())
    while {int(file.name.split("-")[1]) for file in (tmp_path / "ran").iterdir()} < pids:
        assert not run.done(), run.result()
        time.sleep(0.01)
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    (tmp_path / "ran" / "go").touch()
    found = run.result(timeout=LATE)
    np.testing.assert_array_equal(found["sums"], np.full((N_CHUNKS, 1), 7.0))
    assert found["frames"] == N_CHUNKS


def _parts(recipe):
    return (recipe, recipe.grid, recipe.tiling, recipe.sparse_tiling, *recipe.udfs)


def _fill_caches(recipe):
    """Read all that parts of a recipe compute once, as tasks do."""
    for part in _parts(recipe):
        for name, member in vars(type(part)).items():
            if isinstance(member, functools.cached_property):
                getattr(part, name)


class ReadsMeanwhile:
    """A parameter; while it is pickled, another thread's task reads the recipe."""

    recipe = None

    def __dask_tokenize__(self):
        return "reads meanwhile"

    def __reduce__(self):
        _fill_caches(self.recipe)
        return (ReadsMeanwhile, ())


def test_a_worker_sends_a_recipe_while_its_tasks_use_it():
    """Else a cluster waits forever for the recipe: pickling it has failed."""
    x = da.ones((4, 4, 2, 2), chunks=(2, 2, 2, 2))
    reads = ReadsMeanwhile()
    roi = np.eye(4, dtype=bool)
    udf = AutoUDF(np.sum, (), float, kwargs={"where": reads})
    reads.recipe = make_plan(x, [udf], roi=roi).recipe
    pickle.dumps(reads.recipe)
    recipe = make_plan(x, [SumUDF()], roi=roi).recipe
    before = [pickle.dumps(part) for part in _parts(recipe)]
    _fill_caches(recipe)
    assert [pickle.dumps(part) for part in _parts(recipe)] == before
