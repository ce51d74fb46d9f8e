"""Backends give equal numbers, and which one is chosen: native, near, cheap, preferred."""

import copy
import pickle

import dask
import dask.array as da
import numpy as np
import pytest
import sparse
import sparseconverter
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import udfdask as ud
from backend_udfs import Wants, program_on
from chunk_backends import ANY_SHAPE, MATRICES, can_hold, chunks_in
from making import SYNC
from program_strategies import cases
from suites import examples, few_of
from udf_programs import make_udf
from udfdask import udfs
from udfdask.backends.backend import CUDA, CUPY, NUMPY
from udfdask.backends.sparse_rows import coo_starts
from udfdask.backends.sparse_types import coo_rows, coo_take
from udfdask.backends.table import BACKENDS, choose_backends
from udfdask.base.names.naming import tokenize_value
from udfdask.corrections import CorrectionSet
from udfdask.results.result_array import ResultArray
from udfdask.testing import assert_eq, run_reference
from udfdask.testing.strategies import arrays, chunkings, rois, shapes

ROUNDING = {"rtol": 1e-5, "atol": 1e-3}
ON_HOST = sorted(ud.UDF.CPU_BACKENDS)
NATIVES = (*ANY_SHAPE, ud.UDF.BACKEND_SPARSE_DOK)
METHODS = ("tile", "frame", "partition")
DTYPES = ("uint16", "int8", "int64", "float32", "float64", "complex64", "bool")

pytestmark = pytest.mark.filterwarnings("ignore::udfdask.UDFWarning")
few = settings(deadline=None, max_examples=examples(30), suppress_health_check=list(HealthCheck))

offers = st.lists(st.sampled_from(ON_HOST), min_size=1, max_size=3, unique=True).map(tuple)


@st.composite
def runs(draw, dtypes=DTYPES):
    native = draw(st.sampled_from((*NATIVES, *MATRICES)))
    matrix = native in MATRICES
    one = {"min_nav": 1, "max_nav": 1, "max_sig": 1} if matrix else {}
    shape = draw(shapes(**one, max_side=4))
    data = draw(arrays(shape, dtype=draw(st.sampled_from(few_of(dtypes))), largest=20))
    data[draw(arrays(shape, dtype="bool"))] = 0
    array = da.from_array(data, chunks=draw(chunkings(shape)))
    return {
        "data": data,
        "array": chunks_in(array, native, shape.sig_dims),
        "native": native,
        "sig_dims": shape.sig_dims,
        "roi": draw(rois(tuple(shape.nav))),
        "tile": draw(st.sampled_from(["1 MiB", 64, 1])),
    }


def agree(run, asked, **how):
    """Compare UDFs in one pass over the chunks with the reference run over NumPy."""
    options = {"sig_dims": run["sig_dims"], "roi": run["roi"]}
    with dask.config.set({"udfdask.tile-bytes": run["tile"]}):
        lazy = ud.run_udf(run["array"], asked, **options, **how)
    done = ud.compute(*lazy, **SYNC)
    with np.errstate(all="ignore"):
        wanted = run_reference(run["data"], asked, **options, **how)
    for udf, before, found, right in zip(asked, lazy, done, wanted, strict=True):
        for name in right:
            where = f"{type(udf).__name__}.{name}"
            assert type(found[name]) is ResultArray, where
            assert type(found[name].data) is np.ndarray is type(before[name]._meta), where
        assert_eq(found, right, **ROUNDING)


@st.composite
def wanting(draw):
    return Wants(
        draw(offers),
        draw(st.sampled_from(METHODS)),
        draw(st.booleans()),
        draw(st.sampled_from([None, "float32", "complex64"])),
    )


@given(runs(dtypes=DTYPES[:-1]), st.lists(wanting(), min_size=1, max_size=3))
@few
def test_every_pixel_arrives(run, asked):
    agree(run, asked)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("write", [False, True], ids=["reads", "writes"])
@pytest.mark.parametrize("native", [*NATIVES, *MATRICES])
def test_every_pairing_of_chunks_and_wishes(native, write, method):
    data = np.random.default_rng(1).poisson(0.7, (5, 12)).astype("uint8")
    run = {"data": data, "native": native, "sig_dims": 1, "tile": 8, "roi": np.arange(5) != 1}
    run["array"] = chunks_in(da.from_array(data, chunks=(3, 8)), native, 1)
    agree(run, [Wants(backend, method, write) for backend in ON_HOST])


@pytest.mark.full
@given(runs(), st.data())
@few
def test_corrected_data_arrive_too(run, data):
    shape, sig_dims = run["data"].shape, run["sig_dims"]
    sig = shape[len(shape) - sig_dims :]
    bad = data.draw(arrays(sig, dtype="bool"))
    bad.flat[0] = False
    corrections = CorrectionSet(
        dark=data.draw(arrays(sig, dtype="float32")),
        gain=data.draw(arrays(sig, dtype="float32")),
        excluded_pixels=bad,
        allow_empty=True,
    )
    if run["data"].dtype.kind == "c":
        corrections = CorrectionSet(dark=np.ones(sig))
    agree(run, [data.draw(wanting()), udfs.SumUDF(), Wants("numpy")], corrections=corrections)


@given(cases(), st.sampled_from(NATIVES), st.data())
@few
def test_random_programs(case, native, data):
    array = da.from_array(case.array(), chunks=case.chunks)
    if can_hold(native, array, case.sig_dims):
        array = chunks_in(array, native, case.sig_dims)
    half = ["numpy", ud.UDF.BACKEND_SPARSE_COO, ud.UDF.BACKEND_SPARSE_DOK]
    known = half if case.dtype == "float16" else ON_HOST
    offered = st.lists(st.sampled_from(known), min_size=1, max_size=3, unique=True)
    how = {"sig_dims": case.sig_dims, "roi": case.roi}
    asked = [program_on(p, data.draw(offered)) for p in case.programs]
    with dask.config.set({"udfdask.tile-bytes": case.tile_bytes}):
        lazy = ud.run_udf(array, asked, split_every=case.split_every, **how)
    plain = [make_udf(p, lazy=False) for p in case.programs]
    wanted = run_reference(case.array(), plain, **how)
    for found, right in zip(ud.compute(*lazy, **SYNC), wanted, strict=True):
        assert_eq(found, right, **ROUNDING)


@pytest.mark.parametrize(
    "native", [ud.UDF.BACKEND_SPARSE_GCXS, ud.UDF.BACKEND_SPARSE_COO, ud.UDF.BACKEND_SCIPY_CSR]
)
def test_on_a_cluster(native, client):
    data = np.random.default_rng(4).poisson(0.5, (7, 12)).astype("uint16")
    array = chunks_in(da.from_array(data, chunks=(2, 5)), native, 1)
    # no conversions that `sparse` would compile again in each process
    asked = [udfs.SumUDF(), Wants(native), Wants(ud.UDF.BACKEND_SCIPY_CSR, "frame", True)]
    done = ud.compute(*ud.run_udf(array, asked, sig_dims=1), scheduler=client)
    wanted = run_reference(data, asked, sig_dims=1)
    for found, right in zip(done, wanted, strict=True):
        assert_eq(found, right, **ROUNDING)


@pytest.mark.parametrize("dtype", [None, "int32", "uint16", "uint8"])
def test_frames_taken_out_of_coo_arrays(dtype):
    """Take neighboring frames, and frames in any order, also with narrow coordinates."""
    rng = np.random.default_rng(0)
    for sig in [(), (3,), (4, 2)]:
        dense = rng.poisson(0.3, (250, *sig))
        filled = np.nonzero(dense)
        coo = sparse.COO(np.array(filled), dense[filled], dense.shape, idx_dtype=dtype)
        starts, places = coo_starts(coo), rng.permutation(250)
        for first, stop in [(0, 250), (7, 7), (13, 211)]:
            chosen = places[first:stop]
            for cut, wanted in (
                (coo_rows(coo, starts, first, stop), dense[first:stop]),
                (coo_take(coo, starts, chosen), dense[chosen]),
            ):
                np.testing.assert_array_equal((cut + cut).todense(), 2 * wanted)


natives = st.sampled_from([one for one in BACKENDS if one != CUDA])  # what arrays are made of
few_offers = st.lists(st.sampled_from(BACKENDS), min_size=1, max_size=4, unique=True)
several_offers = st.lists(few_offers.map(tuple), min_size=1, max_size=4)


def near(native, offer):
    """Return the backends of an offer without those that are farther away than others."""
    offer = [n for n in offer if n.device == native.device] or offer
    return [n for n in offer if n.is_sparse] or offer if native.is_sparse else offer


@given(natives, several_offers)
def test_native_then_near_then_cheap_then_preferred(native, offers):
    chosen = choose_backends(native, offers, corrected=False)
    for one, offer in zip(chosen, offers, strict=True):
        candidates = [native] if native in offer else near(native, offer)
        costs = [sparseconverter.conversion_cost(native.name, n.name) for n in candidates]
        assert one == candidates[costs.index(min(costs))]


@given(natives, several_offers)
def test_corrected_data_are_dense(native, offers):
    side = CUPY if native.on_device else NUMPY
    assert choose_backends(native, offers, corrected=True) == choose_backends(
        side, offers, corrected=False
    )


def test_a_process_has_one_value_for_each_backend():
    assert pickle.loads(pickle.dumps(BACKENDS)) == BACKENDS == copy.deepcopy(BACKENDS)
    assert len(set(map(tokenize_value, BACKENDS))) == len(BACKENDS)
