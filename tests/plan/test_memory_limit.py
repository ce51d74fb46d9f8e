"""`max_memory`: a run that does not fit is refused, and the remedies of the message are true."""

import re

import dask
import dask.array as da
import numpy as np
import pytest
from dask.array.core import Array as GraphArray

import udfdask as ud
from making import make
from udfdask.udfs import StdDevUDF, SumSigUDF, SumUDF

MIB = 1 << 20


def generate(block_info=None):
    return np.ones(block_info[None]["chunk-shape"], "uint16")


def data(rows=4, n=8):
    """Chunks of 8 MiB for 4 rows; nothing is ever computed."""
    return da.map_blocks(
        generate,
        chunks=((rows,) * n, (64,), (128,), (128,)),
        dtype="uint16",
        meta=np.empty((0,) * 4, "uint16"),
    )


def large_sums():
    def merge(self, dest, src):
        dest.v[:] += src.v

    return make(
        {"v": {"kind": "sig", "dtype": "float64", "extra_shape": (32,)}},
        process_tile=lambda self, tile: None,
        merge=merge,
    )()


def in_float():
    return make(
        {"v": {"kind": "nav"}},
        process_partition=lambda self, partition: None,
        get_preferred_input_dtype=lambda self: np.float64,
    )()


# array, UDFs, the limit as a share of what the run needs, and a text of one of the remedies
RUNS = {
    "a rechunk": (data(), [in_float()], 0.8, r"array\.rechunk\("),
    "chunks of the source": (data(16), [SumUDF()], 0.3, r"chunks=\("),
    "fewer threads": (data(16), [SumUDF()], 0.6, "num_workers=1"),
    "a smaller fan-in": (data(1, 8), [large_sums()], 0.85, "split_every="),
    "UDFs apart": (data(1), [large_sums(), large_sums()], 0.6, "one after another"),
}


@pytest.fixture(autouse=True)
def two_threads():
    with dask.config.set(num_workers=2):
        yield


def needed(array, udfs, **options):
    return ud.explain(array, udfs, **options).memory.in_process(2).total


def refused(array, udfs, limit, **options):
    with pytest.raises(ud.MemoryLimitError) as caught:
        ud.run_udf(array, udfs, max_memory=limit, **options)
    return str(caught.value)


def remedies_of(message):
    found = re.findall(r"with (.+?) \([\d.]+ \wiB\)", message.partition("it fits ")[2])
    assert found, message
    return found


def follow(remedy, array, udfs, limit):
    """Do what a remedy says, word for word."""
    if found := re.fullmatch(r"dask\.config\.set\(num_workers=(\d+)\)", remedy):
        with dask.config.set(num_workers=int(found[1])):
            ud.run_udf(array, udfs, max_memory=limit)
    elif found := re.fullmatch(r"array\.rechunk\((.+)\)", remedy):
        ud.run_udf(array.rechunk(eval(found[1])), udfs, max_memory=limit)
    elif found := re.fullmatch(r"chunks=(\(.+\)) where the array is made.*", remedy):
        made = da.map_blocks(
            generate,
            chunks=da.core.normalize_chunks(eval(found[1]), array.shape),
            dtype="uint16",
            meta=np.empty((0,) * 4, "uint16"),
        )
        ud.run_udf(made, udfs, max_memory=limit)
    elif found := re.fullmatch(r"split_every=(\d+)", remedy):
        ud.run_udf(array, udfs, max_memory=limit, split_every=int(found[1]))
    else:
        assert remedy.startswith("the UDFs one after another")
        for udf in udfs:
            ud.run_udf(array, udf, max_memory=limit)


@pytest.mark.parametrize("run", RUNS)
def test_each_remedy_makes_the_run_fit(run):
    array, udfs, share, expected = RUNS[run]
    limit = int(share * needed(array, udfs))
    message = refused(array, udfs, limit)
    assert re.search(expected, message), message
    for remedy in remedies_of(message):
        follow(remedy, array, udfs, limit)


@pytest.mark.parametrize("merge_small", ["64 MiB", "16 MiB"])
def test_small_chunks_would_be_joined_again(merge_small):
    """Smaller chunks fit only without `merge_small`, and the message says both."""
    array, udfs = data(8, 8), [in_float()]
    limit = needed(array, udfs, merge_small=merge_small) // 4
    remedies = remedies_of(refused(array, udfs, limit, merge_small=merge_small))
    assert any("chunk" in remedy for remedy in remedies), remedies
    for remedy in remedies:
        free = remedy.removeprefix("no merge_small").removeprefix(" and ")
        assert free != remedy or "chunk" not in remedy
        if free and free != remedy:
            follow(free, array, udfs, limit)


def test_the_setting_of_threads_that_has_priority():
    """With `udfdask.worker-threads`, another `num_workers` would change nothing."""
    array, limit = data(16), int(0.6 * needed(data(16), SumUDF()))
    with dask.config.set({"udfdask.worker-threads": 2}):
        remedies = remedies_of(refused(array, SumUDF(), limit))
        assert "dask.config.set({'udfdask.worker-threads': 1})" in remedies
        with dask.config.set({"udfdask.worker-threads": 1}):
            ud.run_udf(array, SumUDF(), max_memory=limit)


@pytest.mark.parametrize("share", [0.5, 0.2])
def test_chunks_of_the_source_with_copies_while_it_is_loaded(share):
    """Data that are converted or decoded need more than their blocks, with any chunks."""

    class File:
        shape, dtype, ndim, chunks = (128, 64, 64, 64), np.dtype("uint16"), 4, (8, 64, 64, 64)

        def __getitem__(self, index):
            raise AssertionError("a plan reads no data")

    def converted(rows):
        return data(rows, 128 // rows).astype("float64") * 2

    def read(rows):
        return da.from_array(File(), chunks=(rows, 64, 64, 64), meta=np.empty((0,) * 4, "uint16"))

    for make_array in (converted, read):
        limit = int(share * needed(make_array(32), SumUDF()))
        message = refused(make_array(32), SumUDF(), limit)
        rows = re.search(r"chunks=\((\d+), 64, -1, -1\) where the array is made", message)
        assert rows, message
        ud.run_udf(make_array(int(rows[1])), SumUDF(), max_memory=limit)


def test_chunks_that_do_not_fit_are_not_made(monkeypatch):
    """A rechunk lists a task for each frame of a scan; it took 8 s for a scan of 256 x 256."""
    made, rechunk = [], GraphArray.rechunk

    def counted(self, *args, **kwargs):
        made.append(args)
        return rechunk(self, *args, **kwargs)

    monkeypatch.setattr(GraphArray, "rechunk", counted)
    refused(data(16), SumUDF(), 1)
    assert made == []
    remedies = remedies_of(refused(data(), in_float(), int(0.3 * needed(data(), in_float()))))
    assert any("chunk" in remedy for remedy in remedies)
    assert len(made) == 1


def test_a_run_without_chunks_has_one_thread():
    empty = np.zeros((32, 64), bool)
    assert " in a process with 1 thread (" in refused(data(1, 32), SumUDF(), 1, roi=empty)


def test_the_limit_is_what_explain_says():
    x = data()
    limit = needed(x, SumUDF())
    ud.run_udf(x, SumUDF(), max_memory=limit)
    message = refused(x, SumUDF(), limit - 1)
    assert re.search(r"^the run needs [\d.]+ MiB in a process with 2 threads \(data ", message)
    assert f"more than max_memory={limit - 1}: " in message


def test_results_that_are_too_large():
    large = make({"v": {"kind": "nav", "extra_shape": (5000,)}}, process_frame=lambda s, f: None)()
    message = refused(data(1, 32), large, "20 MB")
    part = re.search(r"it fits with a part of the scan, such as array\[:(\d+)\] ", message)
    assert part, message
    ud.run_udf(data(1, 32)[: int(part[1])], large, max_memory="20 MB")
    roi = np.zeros((32, 64), bool)
    roi[:4, :4] = True  # the result has the shape of the scan
    message = refused(data(1, 32), large, "20 MB", roi=roi)
    assert re.search(
        r"one thread needs .* \(results .*\), and no smaller chunks would fit$", message
    )


def test_a_udf_that_takes_only_the_full_scan():
    """The user gets the message about memory, not an error about a scan that nobody has."""

    def get_result_buffers(self):
        if tuple(self.meta.dataset_shape.nav) != (32, 64):
            raise ValueError("the reference has another shape than the scan")
        return {"v": self.buffer(kind="nav", extra_shape=(5000,))}

    udf = make({}, process_frame=lambda s, f: None, get_result_buffers=get_result_buffers)()
    assert "and no smaller chunks would fit" in refused(data(1, 32), udf, "20 MB")


def test_setting_of_the_threads_of_a_worker():
    x = data()
    limit = needed(x, SumUDF())
    with dask.config.set({"udfdask.worker-threads": 1}):
        ud.run_udf(x, SumUDF(), max_memory=limit // 4 * 3)
    with dask.config.set({"udfdask.worker-threads": 4}):
        refused(x, SumUDF(), limit)


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (
            True,
            ud.ArgumentTypeError,
            "max_memory must be a number of bytes or a text such as '2 GB'",
        ),
        (2.5, ud.ArgumentTypeError, "max_memory must be a number of bytes"),
        ("much", ud.ArgumentValueError, "max_memory='much' is not a size"),
        (" ", ud.ArgumentValueError, "max_memory=' ' is not a size"),
        (0, ud.ArgumentValueError, "max_memory must be at least 1 byte, not 0"),
    ],
)
def test_a_value_that_is_not_a_size(value, error, message):
    with pytest.raises(error, match=message):
        ud.run_udf(data(), SumUDF(), max_memory=value)


def test_nothing_is_built_and_nothing_else_changes():
    """The graph is that of a run without a limit; a list of UDFs counts as one run."""
    x = data()
    udfs = [SumUDF(), SumSigUDF(), StdDevUDF()]
    free = ud.run_udf(x, udfs)
    limited = ud.run_udf(x, udfs, max_memory="1 TB")
    assert [r.__dask_tokenize__() for r in free] == [r.__dask_tokenize__() for r in limited]
    refused(x, udfs, needed(x, udfs) - 1)


def test_sparse_data_are_counted_as_dense_and_the_message_says_so():
    sparse = pytest.importorskip("sparse", reason="sparse is an extra")
    x = data().map_blocks(sparse.COO, meta=sparse.zeros((0,) * 4, dtype="uint16"))
    assert "), if the sparse data were dense, more than" in refused(x, SumUDF(), "1 MB")
    assert ", or less: this is what dense data would need" in str(ud.explain(x, SumUDF()))


def test_a_progressive_run_is_refused_too():
    with pytest.raises(ud.MemoryLimitError, match="more than max_memory='2 MB'"):
        ud.run_udf_iter(data(), SumUDF(), max_memory="2 MB")
