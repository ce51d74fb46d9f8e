"""What is passed on to schedulers: misspelled options, and workers that are not there."""

import contextlib

import dask
import dask.array as da
import numpy as np
import pytest
from dask import local

import udfdask as ud
from udfdask.run.progressive import Snapshot
from udfdask.scheduling.restrictions import workers_of
from udfdask.udfs import SumUDF

DOORS = {
    "compute": lambda x, **o: ud.compute(ud.run_udf(x, SumUDF()), **o),
    "persist": lambda x, **o: ud.persist(ud.run_udf(x, SumUDF()), **o),
    "Result.compute": lambda x, **o: ud.run_udf(x, SumUDF()).compute(**o),
    "Result.persist": lambda x, **o: ud.run_udf(x, SumUDF()).persist(**o),
    "run_udf_iter": lambda x, **o: list(ud.run_udf_iter(x, SumUDF(), **o)),
}


def total_of(done, scheduler):
    """Return the computed sum of all frames, in whatever form an entry point hands it out."""
    result = done[-1] if isinstance(done, (list, tuple)) else done
    result = result.buffers[0] if isinstance(result, Snapshot) else result
    return dask.compute(result["intensity"], scheduler=scheduler)[0]


BY_DOOR = pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)


@pytest.fixture
def x():
    return da.ones((4, 3, 4, 4), chunks=(1, 3, 4, 4))


@BY_DOOR
@pytest.mark.parametrize("misspelled", ["progres", "num_worker", "shceduler", "retires"])
def test_misspelled(x, door, misspelled):
    with pytest.raises(ud.ArgumentTypeError, match=f"no argument '{misspelled}'") as caught:
        door(x, **{misspelled: True})
    knows_it = (misspelled, door) != ("progres", DOORS["run_udf_iter"])
    assert ("did you mean" in str(caught.value)) == knows_it


@BY_DOOR
@pytest.mark.parametrize("scheduler", ["threads", "synchronous"])
def test_known_options_pass(x, door, scheduler):
    done = door(x, scheduler=scheduler, num_workers=1, resources={"CUDA": 1}, retries=2)
    np.testing.assert_array_equal(total_of(done, scheduler), np.full((4, 4), 12.0))


@BY_DOOR
def test_a_scheduler_of_the_users_takes_what_it_says(x, door):
    def pick(dsk, keys, *, room, **kwargs):
        return local.get_sync(dsk, keys, **kwargs)

    def strict(dsk, keys, room=None, callbacks=None, chunksize=None, optimize_graph=None):
        return local.get_sync(dsk, keys, callbacks=callbacks)

    for options in ({"scheduler": pick, "whatever": 1}, {"scheduler": strict}):
        done = door(x, room="left", **options)
        np.testing.assert_array_equal(total_of(done, "synchronous"), np.full((4, 4), 12.0))


class TestWorkers:
    @BY_DOOR
    @pytest.mark.parametrize("wrong", ["dead", ["dead", "10.0.0.1:1"], "0", [7]])
    def test_none_of_them_is_there(self, x, door, client, wrong):
        address = min(workers_of(client))
        with pytest.raises(ud.ArgumentValueError, match=r"need a worker among .*, but") as found:
            door(x, scheduler=client, workers=wrong)
        assert f"{address} (name" in str(found.value)

    @BY_DOOR
    def test_every_name_that_a_worker_answers_to(self, x, door, client):
        address, worker = min(workers_of(client).items())
        names = [address, address.removeprefix("tcp://"), worker["id"], worker["host"]]
        for name in (*names, [*names, "dead"]):
            done = door(x, scheduler=client, workers=name)
            np.testing.assert_array_equal(total_of(done, client), np.full((4, 4), 12.0))


@BY_DOOR
@pytest.mark.parametrize("amount", [1, 3])
@pytest.mark.parametrize("how", ["argument", "annotation"])
def test_resources_that_no_worker_has(x, door, client, amount, how):
    """A scheduler would let the tasks wait forever."""
    asked = {"MEMORY" if amount == 1 else "room": amount}
    options = {"resources": asked} if how == "argument" else {}
    around = contextlib.nullcontext() if options else dask.annotate(resources=asked)
    with (
        around,
        pytest.raises(
            ud.ArgumentValueError, match=r"need a worker with the resources .*=[13], but"
        ),
    ):
        door(x, scheduler=client, **options)


@pytest.mark.parametrize("around", ["data", "operation", "run"])
@pytest.mark.parametrize("asked", [{"resources": {"MEMORY": 1}}, {"workers": ["dead"]}], ids=str)
def test_annotations_of_layers_that_no_worker_meets(around, asked, client):
    """They hold if dask does not fuse tasks; else it loses them, and the tasks run anywhere."""

    def annotated(part):
        return dask.annotate(**asked) if part == around else contextlib.nullcontext()

    with annotated("data"):
        x = da.ones((4, 3, 4, 4), chunks=(1, 3, 4, 4))
    with annotated("operation"):
        x = x + 1
    with annotated("run"):
        result = ud.run_udf(x, SumUDF())
    for door in (ud.compute, ud.persist):
        with pytest.raises(ud.ArgumentValueError):
            door(result, scheduler=client, optimize_graph=False)
        with (
            pytest.raises(ud.ArgumentValueError),
            dask.config.set({"optimization.fuse.active": False}),
        ):
            door(result, scheduler=client)
        np.testing.assert_array_equal(total_of(door(result, scheduler=client), client), 24)
