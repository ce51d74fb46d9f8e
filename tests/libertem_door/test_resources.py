"""Backends of LiberTEM's UDFs: which workers they need, and which arrays they get."""

import dask.array as da
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("libertem", reason="libertem is in the extra of that name")
pytest.importorskip("sparse", reason="sparse is in the extra of that name")

import scipy.sparse
import sparse
from libertem.udf import UDF as TheirUDF
from libertem.udf.base import get_resources_for_backends

import udfdask as ud
from making import SYNC
from suites import examples
from udfdask.errors import ArgumentValueError

pytestmark = pytest.mark.filterwarnings("ignore::udfdask.UDFWarning")
CONSTANTS = [name for name in dir(TheirUDF) if name.startswith("BACKEND_")]
NAMES = sorted(getattr(TheirUDF, name) for name in CONSTANTS if name != "BACKEND_ALL")
TYPES = {
    "numpy": np.ndarray,
    "sparse.COO": sparse.COO,
    "sparse.GCXS": sparse.GCXS,
    "scipy.sparse.csr_matrix": scipy.sparse.csr_matrix,
    "scipy.sparse.coo_matrix": scipy.sparse.coo_matrix,
    "scipy.sparse.csr_array": scipy.sparse.csr_array,
    "scipy.sparse.csc_array": scipy.sparse.csc_array,
    "scipy.sparse.coo_array": scipy.sparse.coo_array,
}


class WithBackends(TheirUDF):
    """Sums of frames, from the array types that it is told to ask for."""

    def get_backends(self):
        return self.params.backends

    def get_result_buffers(self):
        return {
            "sums": self.buffer(kind="nav", dtype="float64", where="device"),
            "kind": self.buffer(kind="single", dtype="object"),
            "on": self.buffer(kind="single", dtype="object"),
        }

    def process_tile(self, tile):
        dense = tile if isinstance(tile, np.ndarray) else tile.todense()
        self.results.sums[:] += np.asarray(dense).reshape(len(self.results.sums), -1).sum(axis=1)
        self.results.kind[0] = type(tile)
        self.results.on[0] = (self.meta.array_backend, self.meta.device_class, self.xp.__name__)

    def merge(self, dest, src):
        dest.sums[:] = src.sums
        dest.kind[:] = src.kind
        dest.on[:] = src.on


some_names = st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True).map(tuple)


@settings(max_examples=examples(200))
@given(each=st.lists(some_names, min_size=1, max_size=3), asked=st.none() | some_names)
def test_the_same_udfs_need_a_device(each, asked):
    offers = [set(offer) & set(asked or NAMES) for offer in each]
    udfs = [WithBackends(backends=offer) for offer in each]
    if not all(offers):
        with pytest.raises(ArgumentValueError, match="backends="):
            ud.get_resources(udfs, backends=asked)
        return
    # LiberTEM refuses UDFs that need different devices; here each runs on the workers it needs
    alone = [get_resources_for_backends([offer], asked) for offer in each]
    expected = {"CUDA": 1} if any("CUDA" in theirs for theirs in alone) else {}
    assert ud.get_resources(udfs, backends=asked) == expected


@pytest.mark.parametrize("backend", sorted(TYPES))
@pytest.mark.parametrize("as_tuple", [True, False])
def test_arrays_are_of_the_declared_type(backend, as_tuple):
    values = np.random.default_rng(0).integers(0, 3, (4, 5, 6, 6)).astype(np.float64)
    x = da.from_array(values, chunks=(2, 3, 6, 6))
    x = x.map_blocks(sparse.COO.from_numpy, meta=sparse.zeros((0,) * 4))
    udf = WithBackends(backends=(backend, "cuda") if as_tuple else backend)
    result = ud.run_udf(x, udf).compute(**SYNC)
    np.testing.assert_array_equal(result["sums"], values.sum((2, 3)))
    assert issubclass(result["kind"].reshape(-1)[0], TYPES[backend])
    assert result["on"].reshape(-1)[0] == (backend, "cpu", "numpy")
