"""`max_memory`: a run that does not fit is refused, and the remedies of the message are true."""

import re

import dask
import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from making import make
from udfdask.advice import MakeChunks, PartOfScan, Rechunk, SetOption, SetThreads
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


# array, UDFs, the limit as a share of what the run needs, and the kinds of the remedies
RUNS = {
    "conversion": (data(), [in_float()], 0.8, [MakeChunks, SetThreads]),
    "much less": (data(16), [SumUDF()], 0.3, [MakeChunks]),
    "large sums": (data(1, 8), [large_sums()], 0.85, [SetThreads]),
    "data that are converted": (data(32, 4).astype("float64") * 2, [SumUDF()], 0.2, [MakeChunks]),
}


@pytest.fixture(autouse=True)
def two_threads():
    with dask.config.set(num_workers=2):
        yield


def needed(array, udfs, **options):
    return ud.explain(array, udfs, **options).memory.total(2)


def refused(array, udfs, limit, **options):
    with pytest.raises(ud.errors.MemoryLimitError) as caught:
        ud.run_udf(array, udfs, max_memory=limit, **options)
    return caught.value


def follow(remedy, array, udfs, limit):
    """Do what a remedy says."""
    match remedy:
        case SetThreads(threads, _):
            with dask.config.set(num_workers=threads):
                ud.run_udf(array, udfs, max_memory=limit)
        case MakeChunks(Rechunk(chunks)):
            sizes = da.core.normalize_chunks(chunks, array.shape)
            made = da.map_blocks(
                generate, chunks=sizes, dtype="uint16", meta=np.empty((0,) * 4, "uint16")
            )
            if array.dtype != made.dtype:
                made = made.astype(array.dtype) * 2
            ud.run_udf(made, udfs, max_memory=limit)
        case PartOfScan(rows):
            ud.run_udf(array[:rows], udfs, max_memory=limit)


@pytest.mark.parametrize("run", RUNS)
def test_each_remedy_makes_the_run_fit(run):
    array, udfs, share, kinds = RUNS[run]
    limit = int(share * needed(array, udfs))
    advice = refused(array, udfs, limit).advice
    assert [type(remedy) for remedy in advice.remedies] == kinds
    assert advice.numbers == {"needed": needed(array, udfs), "limit": limit}
    for remedy in advice.remedies:
        follow(remedy, array, udfs, limit)


def test_small_chunks_would_be_joined_again():
    array, udfs = data(1, 64), [in_float()]
    limit = needed(array, udfs, merge_small="16 MiB") // 4
    first, *_ = refused(array, udfs, limit, merge_small="16 MiB").advice.remedies
    assert first == SetOption("merge_small", None)


def test_the_limit_is_what_explain_says():
    x = data()
    limit = needed(x, SumUDF())
    ud.run_udf(x, SumUDF(), max_memory=limit)
    message = str(refused(x, SumUDF(), limit - 1))
    assert re.search(r"^the run needs [\d.]+ MiB in a process with 2 threads \(data ", message)
    assert f"more than max_memory={limit - 1}: " in message


def test_results_that_are_too_large():
    large = make({"v": {"kind": "nav", "extra_shape": (5000,)}}, process_frame=lambda s, f: None)()
    (part,) = refused(data(1, 32), large, "40 MB").advice.remedies
    assert isinstance(part, PartOfScan)
    follow(part, data(1, 32), large, "40 MB")
    roi = np.zeros((32, 64), bool)
    roi[:4, :4] = True  # the result has the shape of the scan
    assert not refused(data(1, 32), large, "40 MB", roi=roi).advice.remedies


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (2.5, ud.ArgumentTypeError),
        ("much", ud.ArgumentValueError),
        (" ", ud.ArgumentValueError),
        (0, ud.ArgumentValueError),
    ],
)
def test_a_value_that_is_not_a_size(value, error):
    with pytest.raises(error, match="max_memory"):
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
    assert "), if the sparse data were dense, more than" in str(refused(x, SumUDF(), "1 MB"))
    assert ", or less: this is what dense data would need" in str(ud.explain(x, SumUDF()))


def test_setting_of_the_threads_of_a_worker():
    x = data()
    limit = needed(x, SumUDF())
    with dask.config.set({"udfdask.worker-threads": 1}):
        ud.run_udf(x, SumUDF(), max_memory=limit // 4 * 3)
    with dask.config.set({"udfdask.worker-threads": 4}):
        refused(x, SumUDF(), limit)


def test_a_progressive_run_is_refused_too():
    with pytest.raises(ud.errors.MemoryLimitError, match="more than max_memory='2 MB'"):
        ud.run_udf_iter(data(), SumUDF(), max_memory="2 MB")
