"""assert_eq sees values, shapes, dtypes and blocks, and says where they differ."""

import dask.array as da
import numpy as np
import pytest

import udf_zoo
import udfdask as ud
from udfdask.testing import assert_eq, run_reference
from udfdask.udfs import SumSigUDF

EQUAL = [
    (da.arange(5, chunks=2), np.arange(5)),
    (da.ones((3, 4), chunks=((1, 2), (4,))), da.ones((3, 4), chunks=2)),
    (np.array([1.0, np.nan]), np.array([1.0 + 1e-9, np.nan])),
    (np.array([1 + 1j, complex(np.nan, 0)]), np.array([1 + 1j, complex(np.nan, 0)])),
    (np.array(["NaT", "2020"], "M8[D]"), np.array(["NaT", "2020"], "M8[D]")),
    (np.array(["a", "b"]), np.array(["a", "b"])),
    (np.array([{"a": np.ones(2)}, None]), np.array([{"a": np.ones(2)}, None])),
    (np.ones(3, "i4,f8"), np.ones(3, "i4,f8")),
    (da.from_array(np.float32(3)), np.float32(3)),
    (da.ones((0, 3)), np.ones((0, 3))),
    ({"a": np.arange(3)}, {"a": da.arange(3)}),
]


@pytest.mark.parametrize(("a", "b"), EQUAL)
def test_equal(a, b):
    assert_eq(a, b)
    assert_eq(b, a)


def lying(block, **announced):
    """A dask array whose single block is not what it announces."""
    name = "lying"
    return da.Array({(name, 0): block}, name, **announced)


DIFFERENT = [
    (np.arange(3), np.arange(4), "shapes"),
    (np.arange(3), np.arange(3.0), "dtypes"),
    (np.arange(3, dtype=">i4"), np.arange(3, dtype="<i4"), "dtypes"),
    (
        da.arange(6, chunks=4).reshape(2, 3),
        np.arange(1, 7).reshape(2, 3),
        r"0 and 1 \(at index \(0, 0\); 6 of 6",
    ),
    (np.array([1.0, np.nan]), np.array([1.0, 2.0]), r"nan and 2.0 \(at index 1; 1 of 2"),
    (np.array([1.0]), np.array([1.001]), "1.0 and 1.001"),
    (np.array([2**60]), np.array([2**60 + 1]), "1152921504606846976 and 1152921504606846977"),
    (np.array([b"a"]), np.array([b"b"]), "b'a' and b'b'"),
    (np.array([{"a": 1}]), np.array([{"a": 2}]), "arrays differ"),
    (np.ones(1, "i4,f8"), np.zeros(1, "i4,f8"), "arrays differ"),
    (lying(np.ones(2), chunks=((3,),), dtype="f8"), np.ones(2), "announces shape"),
    (lying(np.ones(3, "f4"), chunks=((3,),), dtype="f8"), np.ones(3), "announces dtype"),
    ({"a": 1}, {"b": 1}, "names differ"),
    ({"a": np.arange(2)}, {"a": np.ones(2, int)}, "'a' differ"),
    ({"a": 1}, np.ones(1), "names differ"),
]


@pytest.mark.parametrize(("a", "b", "words"), DIFFERENT, ids=lambda v: v if type(v) is str else "")
def test_different(a, b, words):
    with pytest.raises(AssertionError, match=words):
        assert_eq(a, b)


def test_tolerances():
    assert_eq(np.array([1.0]), np.array([1.001]), rtol=1e-2)
    assert_eq(np.array([0.0]), np.array([0.001]), atol=1e-2)
    assert_eq(np.arange(3), np.arange(3.0), check_dtype=False)
    assert_eq(np.arange(3), [0, 1, 2], check_dtype=False)


X = da.from_array(np.arange(4 * 3 * 2 * 2).reshape(4, 3, 2, 2), chunks=(2, 2, 2, 1))


def test_results_that_differ():
    one = ud.run_udf(X, SumSigUDF(), roi=(1, 2))
    with pytest.raises(AssertionError, match=r"'intensity' differ: 0 and 6 \(at index \(0, 0\)"):
        assert_eq(one, ud.run_udf(X, SumSigUDF()))
    with pytest.raises(AssertionError, match=r"names differ: \['intensity'\] and \['sums'\]"):
        assert_eq(one, ud.run_udf(X, udf_zoo.NavSums()))


def test_masks_are_compared():
    class Masked(udf_zoo.NavSums):
        def __init__(self, valid):
            super().__init__(valid=valid)

        def get_results(self):
            return {"sums": self.with_mask(self.results.sums, self.params.valid)}

    assert_eq(ud.run_udf(X, Masked(True)), ud.run_udf(X, Masked(True)).compute())
    with pytest.raises(AssertionError, match=r"valid_mask\['sums'\] differ"):
        assert_eq(ud.run_udf(X, Masked(True)), ud.run_udf(X, Masked(False)))


def test_each_side_is_computed_once():
    loads = []

    def load(block):
        if block.size:  # not dask's own look at an empty block
            loads.append(block.shape)
        return block

    counted = X.map_blocks(load, dtype=X.dtype)
    assert_eq(ud.run_udf(counted, SumSigUDF()), run_reference(X, SumSigUDF()))
    assert len(loads) == X.npartitions
