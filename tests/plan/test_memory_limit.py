"""`max_memory`: a run that does not fit is refused before anything is built."""

import dask
import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from udfdask.udfs import StdDevUDF, SumSigUDF, SumUDF


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


def test_the_limit_is_what_explain_says():
    x = data()
    limit = needed(x, SumUDF())
    ud.run_udf(x, SumUDF(), max_memory=limit)
    error = refused(x, SumUDF(), limit - 1)
    assert error.advice.numbers == {"needed": limit, "limit": limit - 1}


@pytest.mark.parametrize("dtype", ["uint16", "float64"])
def test_what_the_message_says_helps(dtype):
    """Smaller chunks, fewer threads, fewer UDFs, a part of the scan."""
    x, udfs = data(16).astype(dtype), [SumUDF(), SumSigUDF(), StdDevUDF()]
    limit = needed(x, udfs) * 4 // 5
    refused(x, udfs, limit)
    ud.run_udf(data(4, 32).astype(dtype), udfs, max_memory=limit)
    with dask.config.set({"udfdask.worker-threads": 1}):
        ud.run_udf(x, udfs, max_memory=limit)
    assert needed(x, udfs[:1]) < needed(x, udfs)
    assert needed(x[:8], udfs) < needed(x, udfs)


@pytest.mark.parametrize("value", [2.5, "much", " ", 0])
def test_a_value_that_is_not_a_size(value):
    error = ud.ArgumentTypeError if value == 2.5 else ud.ArgumentValueError
    with pytest.raises(error, match="max_memory"):
        ud.run_udf(data(), SumUDF(), max_memory=value)


def test_sparse_data_are_counted_as_dense():
    sparse = pytest.importorskip("sparse", reason="sparse is an extra")
    x = data().map_blocks(sparse.COO, meta=sparse.zeros((0,) * 4, dtype="uint16"))
    assert refused(x, SumUDF(), "1 MB").advice.numbers["needed"] == needed(x, SumUDF())
    assert ud.explain(x, SumUDF()).memory.is_bound
