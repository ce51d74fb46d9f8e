"""d"""

import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from making import compute, make


@pytest.mark.point(18)
@pytest.mark.parametrize(
    ("dtype", "preferred", "expected"),
    [
        ("uint8", None, "float32"),
        ("uint16", None, "float32"),
        ("int16", None, "float32"),
        ("float16", None, "float32"),
        ("bool", None, "float32"),
        ("int32", None, "float64"),
        ("uint32", None, "float64"),
        ("int64", None, "float64"),
        ("float32", None, "float32"),
        ("float64", None, "float64"),
        ("complex64", None, "complex64"),
        (">u2", None, "float32"),
        (">f8", None, "=f8"),
        ("uint16", ud.UDF.USE_NATIVE_DTYPE, "uint16"),
        ("bool", ud.UDF.USE_NATIVE_DTYPE, "bool"),
        (">u2", ud.UDF.USE_NATIVE_DTYPE, "=u2"),
        (">i4", ud.UDF.USE_NATIVE_DTYPE, "=i4"),
        ("uint16", "float64", "float64"),
        ("uint8", "complex64", "complex64"),
    ],
)
@pytest.mark.parametrize("method", ["process_frame", "process_tile", "process_partition"])
def test_input_dtype(dtype, preferred, expected, method):
    data = (np.arange(2 * 3 * 4 * 4) % 2).reshape(2, 3, 4, 4).astype(dtype)
    x = da.from_array(data, chunks=(1, 3, 4, 4))

    def process(self, piece):
        assert piece.dtype == np.dtype(expected) == self.meta.input_dtype
        assert piece.dtype.isnative
        assert self.meta.dataset_dtype == np.dtype(dtype)
        self.results.v[:] = piece.reshape(-1, 16).sum(axis=1).real.astype("float64")

    methods = {method: process}
    if preferred is not None:
        methods["get_preferred_input_dtype"] = lambda self: preferred
    done = compute(x, make({"v": {"kind": "nav", "dtype": "float64"}}, **methods)())
    np.testing.assert_array_equal(done["v"], np.full((2, 3), 8.0))
