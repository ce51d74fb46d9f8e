"""Law 11: tasks of UDFs that need a device run where it is, all others anywhere."""

import dask
import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from counting import counts
from cuda_udfs import Cuda, Cupy, Hybrid, Rows, loaded, numbers
from udfdask import on_workers
from udfdask.errors import ArgumentTypeError, ArgumentValueError, DeviceError
from udfdask.udfs import SumSigUDF, SumUDF

SHAPE, CHUNKS = (12, 3, 4, 4), (1, 3, 4, 4)
DATA = np.random.default_rng(3).integers(0, 99, SHAPE)
DEVICE = {"cuda-0"}
OTHERS = {"cpu-0", "cpu-1"}


def lazy(folder, chunks=CHUNKS):
    """Data that note where they are loaded."""
    array = da.from_array(DATA - 1, chunks=chunks)
    return array.map_blocks(loaded, folder=folder, dtype="int64", meta=np.empty(0, "int64"))


def where(folder):
    """The workers on which each kind of thing ran, and how often; each thing ran once."""
    found = counts(folder)
    assert set(found.values()) == {1}, found
    workers = {}
    for name in found:
        what, _, worker = name.partition("@")
        workers.setdefault(what.partition("-")[0], []).append(worker)
    return {what: (set(names), len(names)) for what, names in workers.items()}


def check(result, offset=0, data=DATA):
    sums, total = numbers(data)
    np.testing.assert_array_equal(result["sums"], sums + offset)
    np.testing.assert_array_equal(result["total"], total)


def check_tags(tasks, tag=1, loading=()):
    """Tasks that need a device carry the tag and ran there, and no other carries any."""
    for key, worker, resources in tasks:
        needs = "cuda-chunk" in key or any(name in key for name in loading)
        assert resources == ({"CUDA": tag} if needs else {}), (key, resources)
        assert not needs or worker in DEVICE, (key, worker)
    assert any(resources for *_, resources in tasks)


def with_progress(results, client):
    states = []
    done = ud.compute(*results, scheduler=client, progress=states.append)
    assert states[-1].num_frames_complete == states[-1].num_frames_total == 36
    assert states[-1].num_part_complete == 12
    return done


def persisted(results, client, **options):
    return ud.compute(*ud.persist(*results, scheduler=client, **options), scheduler=client)


DOORS = {
    "computed": lambda results, client: ud.compute(*results, scheduler=client),
    "with progress": with_progress,
    "persisted": persisted,
    "persisted with progress": lambda *run: persisted(*run, progress=lambda state: None),
    "optimized": lambda results, client: ud.compute(*dask.optimize(*results), scheduler=client),
}


@pytest.mark.full
@pytest.mark.parametrize("door", DOORS)
def test_alone(door, mixed, recorded, folder):
    (done,) = DOORS[door]([ud.run_udf(lazy(folder), Cuda(folder))], mixed)
    check(done)
    assert where(folder) == {"load": (DEVICE, 12), "cuda": (DEVICE, 12)}
    check_tags(recorded())


@pytest.mark.full
@pytest.mark.parametrize("door", DOORS)
def test_beside_a_udf_for_any_worker(door, mixed, recorded, folder):
    udfs = [Rows(folder, pause=0.02), Cuda(folder), SumSigUDF()]
    rows, cuda, sums = DOORS[door](ud.run_udf(lazy(folder), udfs), mixed)
    check(rows)
    check(cuda)
    np.testing.assert_array_equal(sums["intensity"], numbers(DATA)[0])
    found = where(folder)
    assert found["cuda"] == (DEVICE, 12)
    assert found["rows"][0] >= OTHERS
    assert {what: n for what, (_, n) in found.items()} == {"load": 12, "cuda": 12, "rows": 12}
    check_tags(recorded())


@pytest.mark.full
def test_progressive_runs(mixed, recorded, folder):
    udfs = [Rows(folder, pause=0.02), Cuda(folder)]
    snapshots = ud.run_udf_iter(lazy(folder), udfs, scheduler=mixed)
    *before, last = snapshots
    assert len(before) == 11
    assert not before[3].damage.all()
    for done in last.buffers:
        check(done)
    found = where(folder)
    assert found["cuda"] == (DEVICE, 12)
    assert found["rows"][0] >= OTHERS
    assert found["load"][1] == 12
    check_tags(recorded())
    *_, last = ud.run_udf_iter(lazy(folder), Cuda(folder), scheduler=mixed)
    check(last.buffers[0])
    assert where(folder) == {"load": (DEVICE, 12), "cuda": (DEVICE, 12)}
    check_tags(recorded())


@pytest.mark.parametrize("udf", [Hybrid, Rows])
def test_whoever_can_do_without_a_device_runs_anywhere(udf, mixed, client, recorded, folder):
    (done,) = ud.compute(ud.run_udf(lazy(folder), udf(folder, pause=0.02)), scheduler=mixed)
    check(done)
    assert where(folder)[udf.__name__.lower()][0] >= OTHERS
    assert all(resources == {} for *_, resources in recorded())
    # and on a cluster without any device
    (done,) = ud.compute(ud.run_udf(lazy(folder), udf(folder)), scheduler=client)
    check(done)
    *_, last = ud.run_udf_iter(lazy(folder), udf(folder), scheduler=client)
    check(last.buffers[0])


@pytest.mark.full
def test_loading_apart_from_the_chunks(mixed, recorded, folder):
    chunks = (2, 3, 2, 4)
    (done,) = ud.compute(ud.run_udf(lazy(folder, chunks), Cuda(folder)), scheduler=mixed)
    check(done)
    assert where(folder) == {"load": (DEVICE, 12), "cuda": (DEVICE, 6)}
    check_tags(recorded(), loading=["loaded", "array"])
    rows, cuda = ud.compute(
        *ud.run_udf(lazy(folder, chunks), [Rows(folder), Cuda(folder)]), scheduler=mixed
    )
    check(rows)
    check(cuda)
    found = where(folder)
    assert found["cuda"] == (DEVICE, 6)
    assert found["load"][1] == 12
    check_tags(recorded())


@pytest.mark.full
def test_parameters_are_computed_anywhere(mixed, recorded, folder):
    made = lazy(folder).mean().astype("int64") * 0 + 5
    results = ud.run_udf(lazy(folder), [Cuda(folder, offset=made), Rows(folder)])
    cuda, rows = ud.compute(*results, scheduler=mixed)
    check(cuda, offset=5)
    check(rows)
    check_tags(recorded())


@pytest.mark.full
def test_what_another_udf_has_made_is_made_anywhere(mixed, recorded, folder):
    array = lazy(folder)
    rows = ud.run_udf(array, Rows(folder))
    aux = ud.UDF.aux_data(rows["sums"], "nav", dtype="int64")
    (done,) = ud.compute(ud.run_udf(array, Cuda(folder, offset=aux)), scheduler=mixed)
    np.testing.assert_array_equal(done["sums"], 2 * numbers(DATA)[0])
    found = {what: n for what, (_, n) in where(folder).items()}
    assert found == {"load": 12, "rows": 12, "cuda": 12}
    check_tags(recorded())


@pytest.mark.full
@pytest.mark.parametrize("how", ["argument", "annotation", "function"])
def test_resources_of_the_user(how, mixed, recorded, folder):
    results = ud.run_udf(lazy(folder), [Rows(folder), Cuda(folder)])
    half = {"CUDA": 0.5}  # two tasks at a time on one device
    if how == "argument":
        rows, cuda = ud.compute(*results, scheduler=mixed, resources=half)
    else:
        with dask.annotate(resources=half if how == "annotation" else lambda key: half):
            rows, cuda = ud.compute(*results, scheduler=mixed)
    check(rows)
    check(cuda)
    where(folder)
    tasks = recorded()
    assert {tuple(resources.items()) for *_, resources in tasks} == {(("CUDA", 0.5),)}
    assert {worker for _, worker, _ in tasks} == DEVICE


def test_more_than_any_worker_has(mixed, folder):
    result = ud.run_udf(lazy(folder), Cuda(folder))
    with pytest.raises(DeviceError, match="need a worker with the resources CUDA=2, but"):
        ud.compute(result, scheduler=mixed, resources={"CUDA": 2})
    with pytest.raises(DeviceError, match="memory=5, but"):
        list(ud.run_udf_iter(lazy(folder), Cuda(folder), scheduler=mixed, resources={"memory": 5}))
    assert not counts(folder)


@pytest.mark.full
def test_blocks_that_only_some_workers_may_load(mixed, recorded, folder):
    array = on_workers(lazy(folder), lambda block: ["cpu-0", "cpu-1"][block[0] % 2])
    # the blocks are loaded where they may be, and go to the device from there
    rows, cuda = ud.compute(*ud.run_udf(array, [Rows(folder), Cuda(folder)]), scheduler=mixed)
    check(rows)
    check(cuda)
    found = where(folder)
    assert found["load"] == (OTHERS, 12)
    assert found["cuda"] == (DEVICE, 12)
    check_tags(recorded())
    (cuda,) = ud.compute(
        ud.run_udf(on_workers(lazy(folder), "cuda-0"), Cuda(folder)), scheduler=mixed
    )
    check(cuda)
    assert where(folder) == {"load": (DEVICE, 12), "cuda": (DEVICE, 12)}


def test_blocks_that_no_worker_with_a_device_may_load(mixed, recorded, folder):
    array = on_workers(lazy(folder), "cpu-0")
    result = ud.run_udf(array, Cuda(folder))
    match = r"need a worker among \['cpu-0'\] with the resources CUDA=1, but"
    with pytest.raises(DeviceError, match=match):
        ud.compute(result, scheduler=mixed)
    with pytest.raises(DeviceError, match=match):
        next(ud.run_udf_iter(array, Cuda(folder), scheduler=mixed))
    with pytest.raises(DeviceError, match=match):
        ud.compute(ud.run_udf(lazy(folder), Cuda(folder)), scheduler=mixed, workers=["cpu-0"])
    assert not counts(folder)
    # where this is a wish, the device counts for more
    (done,) = ud.compute(result, scheduler=mixed, allow_other_workers=True)
    check(done)
    assert where(folder) == {"load": (DEVICE, 12), "cuda": (DEVICE, 12)}
    check_tags(recorded())


def test_a_region_without_frames_needs_no_device(client, folder):
    nothing = np.zeros(SHAPE[:2], dtype=bool)
    result = ud.run_udf(lazy(folder), [Cuda(folder), Rows(folder)], roi=nothing)
    for scheduler in (client, "threads"):
        cuda, _ = ud.compute(*result, scheduler=scheduler)
        assert not cuda["total"].any()
        (last,) = ud.run_udf_iter(
            lazy(folder), [Cuda(folder), SumUDF()], roi=nothing, scheduler=scheduler
        )
        assert not last.buffers[0]["total"].any()


CUDA = {"CUDA": 1}


@pytest.mark.parametrize(
    ("udfs", "backends", "wanted"),
    [
        (Rows("."), None, {}),
        (Cuda("."), None, CUDA),
        (Cupy("."), None, CUDA),
        (Hybrid("."), None, {}),
        ([SumUDF(), SumSigUDF()], None, {}),
        ([SumUDF(), Cuda(".")], None, CUDA),
        ((Hybrid("."), Rows(".")), None, {}),
        (Hybrid("."), "numpy", {}),
        (Hybrid("."), "cuda", CUDA),
        (Hybrid("."), ["cupy", "cuda"], CUDA),
        (Hybrid("."), ["cupy", "numpy"], {}),
    ],
)
def test_what_they_need(udfs, backends, wanted):
    assert ud.get_resources(udfs, backends=backends) == wanted


@pytest.mark.parametrize(
    ("udfs", "backends", "error", "match"),
    [
        ([], None, ArgumentValueError, "got an empty list"),
        (SumUDF, None, ArgumentTypeError, r"write SumUDF\(\.\.\.\)"),
        ("sum", None, ArgumentTypeError, "expected a UDF or a list of UDFs, got str"),
        ({Cuda(".")}, None, ArgumentTypeError, "got set"),
        (Cuda("."), "numpy", ArgumentValueError, "the run is restricted to"),
        (Cuda("."), "gpu", ArgumentValueError, "is no array backend"),
        (Cuda("."), 3, ArgumentTypeError, "name an array backend"),
    ],
)
def test_bad_input(udfs, backends, error, match):
    with pytest.raises(error, match=match):
        ud.get_resources(udfs, backends)
