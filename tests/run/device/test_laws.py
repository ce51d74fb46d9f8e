"""Which data stay on a device, which are copied, and how much memory they take."""

import dask
import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from device_udfs import Both, Frames, Partitions, sent
from stand_in import numpy_standing_in_for_cupy
from udfdask.backends.table import to_host
from udfdask.results.result_array import ResultArray

DATA = np.random.default_rng(5).integers(0, 250, (6, 8, 16, 16)).astype("uint8")
ROI = np.random.default_rng(6).random((6, 8)) > 0.5


class Resident(ud.UDF):
    def __init__(self, dtype="float32", factor=2):
        super().__init__(dtype=dtype, factor=factor)

    def get_backends(self):
        return ("cupy",)

    def get_preferred_input_dtype(self):
        return self.params.dtype

    def get_result_buffers(self):
        return {
            "rows": self.buffer("nav", dtype="float64", where="device"),
            "frame": self.buffer("sig", dtype="float64", where="device"),
        }

    def get_shared_task_data(self):
        return {"factor": self.xp.asarray(np.array([self.params.factor]))}

    def process_tile(self, tile):
        self.results.rows[:] += tile.sum(axis=(1, 2), dtype="float64")
        self.results.frame[:] += (tile * self.task_data.factor).sum(axis=0, dtype="float64")

    def merge(self, dest, src):
        dest.rows[:] = src.rows
        dest.frame[:] += src.frame


def chunked(*chunks):
    return da.from_array(DATA, chunks=chunks or (2, 8, 16, 16))


@pytest.mark.parametrize("roi", [None, ROI])
@pytest.mark.parametrize("chunks", [(2, 8, 16, 16), (3, 4, 8, 16)])
def test_what_lives_on_the_device_never_leaves_it(cupy, chunks, roi):
    results = ud.run_udf(sent(cupy, chunked(*chunks)), [Resident(), Frames()], roi=roi)
    arrays = [r[name] for r in results for name in r]
    values = dask.compute(*arrays)
    assert all(isinstance(value, cupy.ndarray) for value in values)
    assert cupy.ledger.bytes_to_host == 0


@pytest.mark.parametrize("announced", ["numpy", "cupy"])
@pytest.mark.parametrize("first_on_device", [True, False])
def test_signal_blocks_of_one_chunk_lie_on_different_devices(cupy, first_on_device, announced):
    """One block on the device is enough to make the task wait for its stream."""
    shared, on_shared = cupy.cuda.get_current_stream(), []

    class Where(Resident):
        def process_tile(self, tile):
            on_shared.append(cupy.cuda.get_current_stream() is shared)
            super().process_tile(tile)

    def place(block, block_id):
        return cupy.asarray(block) if (block_id[3] == 0) == first_on_device else block

    meta = (np if announced == "numpy" else cupy).empty((0,) * 4, dtype="uint8")
    done = ud.run_udf(chunked(2, 8, 16, 8).map_blocks(place, meta=meta), Where()).compute()
    assert set(on_shared) == {True}
    np.testing.assert_array_equal(to_host(done["rows"]), DATA.sum(axis=(2, 3)))
    np.testing.assert_array_equal(to_host(done["frame"]), 2.0 * DATA.sum(axis=(0, 1)))


def test_only_buffers_of_get_results_are_on_the_host(cupy):
    result = ud.run_udf(sent(cupy, chunked()), Partitions())
    mean = result["mean"]
    assert isinstance(dask.compute(mean)[0], cupy.ndarray)
    frame = 16 * 16 * 8
    # total and n, what get_results returns, and a number that says that the merge is associative
    assert cupy.ledger.bytes_to_host == 2 * frame + 8 + 8
    np.testing.assert_allclose(mean.compute().get(), DATA.mean(axis=(0, 1)))


def test_one_transfer_serves_all_udfs(cupy):
    udfs = [Resident("float32"), Resident("float64", 3), Resident("uint8", 4)]
    with dask.config.set({"udfdask.device-tile-bytes": 16 * 16 * 8 * 8}):
        results = ud.run_udf(chunked(), udfs)
        dask.compute(*results)
    # as narrow as they are, eight frames at a time, and three factors
    assert cupy.ledger.bytes_to_device == DATA.nbytes + 3 * 8
    assert cupy.ledger.to_device == 6 + 3
    # what comes back is the buffers of the chunks
    rows, frames = 48 * 8, 3 * 16 * 16 * 8
    assert cupy.ledger.bytes_to_host == 3 * (rows + frames)


@pytest.mark.parametrize("threads", [1, 3])
def test_memory_on_the_device_is_a_few_tiles_a_thread(threads):
    data = np.ones((64, 8, 32, 32), dtype="uint8")
    tile = 16 * 32 * 32 * 4
    with (
        numpy_standing_in_for_cupy() as cupy,
        dask.config.set({"udfdask.device-tile-bytes": tile}),
    ):
        result = ud.run_udf(da.from_array(data, chunks=(16, 8, 32, 32)), Resident())
        result.compute(scheduler="threads", num_workers=threads)
        buffers = 32 * 32 * 8 + 128 * 8
        products = 32 * 32 * 16 * 8  # of a tile with a factor of 64 bits
        # the tile as it is and as converted, and those of the tile before
        assert cupy.ledger.most_alive <= threads * (2 * tile + products + buffers + tile // 2)
        assert cupy.ledger.most_alive < threads * data.nbytes // 2 + threads * tile


class Facts(ud.UDF):
    """Record the device and backend that each method sees."""

    seen = {}  # of the class, since a run copies its parameters

    def __init__(self, backend):
        super().__init__(backend=backend)

    def note(self, method):
        meta = self.meta
        facts = (meta.array_backend, meta.device_class, meta.device_number, self.xp.__name__)
        self.seen.setdefault(method, set()).add(facts)

    def get_backends(self):
        return (self.params.backend,)

    def get_result_buffers(self):
        return {
            "there": self.buffer("single", dtype="int64", where="device"),
            "here": self.buffer("single", dtype="int64"),
        }

    def preprocess(self):
        self.note("preprocess")

    def get_task_data(self):
        self.note("get_task_data")
        return {}

    def process_tile(self, tile):
        self.note("process")
        self.seen.setdefault("types", set()).add(
            (type(tile), type(self.results.there), type(self.results.here))
        )

    def postprocess(self):
        self.note("postprocess")

    def merge(self, dest, src):
        self.note("merge")
        dest.there[:] += src.there

    def get_results(self):
        self.note("get_results")
        return {}


ON_HOST = ("numpy", "cpu", None, "numpy")
ON_DEVICE = ("cupy", "cuda", 1, "cupy")
WITH_CUDA = ("cuda", "cuda", 1, "numpy")


@pytest.mark.parametrize(
    ("native", "backend", "chunk", "merge"),
    [
        ("numpy", "numpy", ON_HOST, ON_HOST),
        ("numpy", "cupy", ON_DEVICE, ON_HOST),
        ("numpy", "cuda", WITH_CUDA, ON_HOST),
        ("cupy", "numpy", ON_HOST, ON_HOST),
        ("cupy", "cupy", ON_DEVICE, ON_DEVICE),
        ("cupy", "cuda", WITH_CUDA, ON_HOST),
    ],
)
@pytest.mark.point(25, 27)
def test_a_udf_knows_where_it_is(native, backend, chunk, merge):
    seen = Facts.seen
    seen.clear()
    with (
        numpy_standing_in_for_cupy(n_devices=2) as cupy,
        dask.config.set({"udfdask.cuda-device": 1}),
    ):
        x = sent(cupy, chunked()) if native == "cupy" else chunked()
        dask.compute(*ud.run_udf(x, Facts(backend)).values())
        array = cupy.ndarray if backend == "cupy" else np.ndarray
        assert seen.pop("types") == {(array, array, np.ndarray)}
    assert seen.pop("preprocess") == {chunk, merge}
    assert seen.pop("merge") == {merge}
    assert seen.pop("get_results") == {merge}
    assert set(map(frozenset, seen.values())) == {frozenset({chunk})}


def test_masks_and_rows_are_beside_the_results(cupy):
    result = ud.run_udf(sent(cupy, chunked()), Resident(), roi=ROI)
    for name in ("rows", "frame"):
        for array in (result.raw[name], result.valid_mask[name], result[name]):
            assert isinstance(array._meta, cupy.ndarray)
            assert isinstance(array.compute(), cupy.ndarray)
    raw = result.raw["rows"].compute().get()
    np.testing.assert_array_equal(raw, DATA[ROI].sum(axis=(1, 2)))
    np.testing.assert_array_equal(result.valid_mask["rows"].compute().get(), ROI)
    filled = da.where(result.valid_mask["rows"], result["rows"], -1).sum().compute()
    assert float(filled) == raw.sum() - np.count_nonzero(~ROI)


@pytest.mark.parametrize("native", ["numpy", "cupy"])
@pytest.mark.parametrize("udf", [Resident, Frames, Partitions])
def test_progressive_runs_show_arrays_of_the_host(cupy, native, udf):
    x = sent(cupy, chunked()) if native == "cupy" else chunked()
    *_, last = ud.run_udf_iter(x, udf(), roi=ROI)
    whole = ud.run_udf(x, udf(), roi=ROI).compute()
    for name in whole:
        assert type(last.buffers[0][name]) is ResultArray
        assert type(last.buffers[0][name].data) is np.ndarray
        np.testing.assert_allclose(last.buffers[0][name], whole[name])


def test_private_copies_of_tiles_may_be_written_to(cupy):
    class Writes(Resident):
        writable_input = True

        def process_tile(self, tile):
            tile[:] = 1
            super().process_tile(tile)

    x = sent(cupy, chunked()).persist()
    wrote, read = dask.compute(*(r["rows"] for r in ud.run_udf(x, [Writes(), Resident()])))
    assert (wrote.get() == 256).all()
    np.testing.assert_array_equal(read.get(), DATA.sum(axis=(2, 3)))


@pytest.mark.parametrize("announced", ["numpy", "cupy"])
def test_results_are_what_was_announced_whatever_the_blocks_are(cupy, announced):
    """Of an array whose meta is wrong for some of its blocks."""

    def block(values, block_info=None):
        on_device = block_info[0]["chunk-location"][0] % 2
        return cupy.asarray(values) if on_device else values

    meta = cupy.empty((0,) * 4, "uint8") if announced == "cupy" else np.empty((0,) * 4, "uint8")
    x = chunked(1, 8, 16, 16).map_blocks(block, dtype="uint8", meta=meta)
    for udf in (Both(), Partitions(), Frames()):
        wanted = ud.run_udf(chunked(1, 8, 16, 16), udf, roi=ROI).compute()
        found = ud.run_udf(x, udf, roi=ROI)
        for name, array in found.items():
            value = array.compute()
            assert isinstance(value, cupy.ndarray) == (announced == "cupy")
            value = value.get() if announced == "cupy" else value
            np.testing.assert_allclose(value, wanted[name])
