"""The built-in UDFs over sparse chunks: the numbers of dense ones, and nothing made dense."""

import functools
import tracemalloc
import warnings

import dask
import dask.array as da
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import udfdask as ud
from every_dtype import KNOWN, sample, summable
from sparse_data import (
    FORMATS,
    MATRIX_FORMATS,
    as_matrix,
    forbid_dense,
    maker,
    sparse_chunks,
    sprinkled,
)
from suites import examples
from udfdask.backends.table import backend_named
from udfdask.chunk.run_chunk import run_chunk
from udfdask.corrections import CorrectionSet
from udfdask.masks import circular
from udfdask.testing import raise_if_dask_computes, run_reference
from udfdask.testing.eager_run import make_recipe
from udfdask.testing.strategies import chunkings, rois, shapes
from udfdask.udfs import (
    ApplyMasksUDF,
    CoMUDF,
    PickUDF,
    StdDevUDF,
    SumSigUDF,
    SumUDF,
    VirtualDetectorUDF,
)

pytest.importorskip("sparse", reason="sparse is an extra")

SYNC = {"scheduler": "synchronous"}
DTYPES = ["?", "u2", "i4", "f4", "c8"]
"""One of each kind: code is compiled for each of them."""


def ramp(sig, kind="f8"):
    """Masks that differ from pixel to pixel: a ramp, ones, and one that is mostly 0."""
    n = int(np.prod(sig))
    rows = np.stack([np.arange(n), np.ones(n), np.arange(n) % 5 == 2])
    return rows.astype(kind).reshape(3, *sig)


def masks(sig, kind="f8", **options):
    return ApplyMasksUDF(functools.partial(ramp, tuple(sig), kind), **options)


def udfs_for(sig, dtype):
    """Every UDF that stays sparse and fits frames of this shape."""
    found = [SumUDF(), SumSigUDF(), StdDevUDF(), PickUDF(), masks(sig), masks(sig, "i4")]
    found += [masks(sig, use_sparse=True), masks(sig, "c8")]
    found.append(masks(sig, shifts=tuple(range(1, len(sig) + 1))))
    if len(sig) == 2:
        found += [VirtualDetectorUDF("disk", r=1.5), VirtualDetectorUDF("point", x=0, y=0)]
        if np.dtype(dtype).kind != "c":
            found += [CoMUDF(), CoMUDF(r=1.5)]
            if sig != (1, 1):  # whose pixel is in no ring
                found.append(CoMUDF(r=9, ri=0.5))
    return found


def check(found, expected, udf, dtype):
    for name, values in expected.items():
        got = np.asarray(found[name])
        assert got.dtype == values.dtype, (udf, name)
        assert got.shape == values.shape, (udf, name)
        if values.dtype.kind in "iub":
            np.testing.assert_array_equal(got, values, err_msg=f"{udf} {name}")
            continue
        # whatever is added up has this size, and single precision where the result has it
        scale = float(np.nanmax(np.abs(values), initial=0, where=np.isfinite(values)))
        eps = np.finfo(values.dtype).eps
        kind = np.dtype(dtype).kind
        tolerance = max(16 * eps, 1e-5 if eps > 1e-8 else 1e-11 if kind != "f" else 1e-9)
        np.testing.assert_allclose(
            got, values, rtol=tolerance, atol=tolerance * scale, err_msg=f"{udf} {name}"
        )


def run(x, udfs, **how):
    lazy = ud.run_udf(x, udfs, **how)
    return ud.compute(*lazy, **SYNC) if isinstance(lazy, tuple) else lazy.compute(**SYNC)


def compare(data, x, udfs, **how):
    """Compare with the plain run over dense data, which may not fit its sums either."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        expected = run_reference(data, udfs, **how)
    for udf, found, wanted in zip(udfs, run(x, udfs, **how), expected, strict=True):
        check(found, wanted, udf, data.dtype)


# many signal chunks are too many for some UDFs, which plans say
@pytest.mark.full
@pytest.mark.filterwarnings("ignore:a task takes:udfdask.errors.UDFWarning")
# and a small frame may lie in the disk, which they say too
@pytest.mark.filterwarnings("ignore:.*the disk with:udfdask.errors.UDFWarning")
@settings(deadline=None, max_examples=examples(50))
@given(data=st.data())
def test_the_numbers_of_dense_chunks(data):
    shape = data.draw(shapes(min_nav=1, max_side=4))
    dtype = data.draw(st.sampled_from(DTYPES))
    density = data.draw(st.sampled_from([0, 0.1, 0.5, 1]))
    values = np.random.default_rng(data.draw(st.integers(0, 9))).integers(-99, 99, shape)
    values = (values % 2 if np.dtype(dtype).kind in "ub" else values).astype(dtype)
    values = sprinkled(values, density)
    form = data.draw(st.sampled_from(FORMATS))
    chunks = data.draw(chunkings(shape))
    roi = data.draw(rois(tuple(shape.nav)))
    x = sparse_chunks(values, chunks, form, shape.nav.dims)
    every = udfs_for(tuple(shape.sig), dtype)
    picked = data.draw(st.lists(st.sampled_from(every), min_size=1, max_size=4, unique_by=id))
    compare(values, x, picked, sig_dims=shape.sig_dims, roi=roi)


@pytest.mark.full
@pytest.mark.filterwarnings("ignore:a task takes:udfdask.errors.UDFWarning")
@settings(deadline=None, max_examples=examples(25))
@given(data=st.data())
def test_matrices_too(data):
    shape = (data.draw(st.integers(1, 9)), data.draw(st.integers(1, 9)))
    dtype = data.draw(st.sampled_from(DTYPES))
    values = np.random.default_rng(1).integers(0, 2, shape).astype(dtype)
    values = sprinkled(values, data.draw(st.sampled_from([0, 0.3, 1])))
    form = data.draw(st.sampled_from(MATRIX_FORMATS))
    x = sparse_chunks(values, data.draw(chunkings(shape)), form, 1)
    every = udfs_for(shape[1:], dtype)
    picked = data.draw(st.lists(st.sampled_from(every), min_size=1, max_size=4, unique_by=id))
    compare(values, x, picked, sig_dims=1, roi=data.draw(rois(shape[:1])))


@pytest.mark.full
@pytest.mark.parametrize("dtype", KNOWN)
def test_the_ends_of_each_dtype(dtype):
    values = sprinkled(summable(dtype, (3, 5, 6, 7)), 0.5)
    chunks = (2, 5, 3, 7)
    udfs = [SumUDF(), SumSigUDF(), StdDevUDF(), PickUDF()]
    form = "COO" if dtype == "f2" else "GCXS"  # which has no half
    compare(values, sparse_chunks(values, chunks, form, 2), udfs)


@pytest.mark.full
@pytest.mark.parametrize(
    ("dtype", "kind"), [("u2", "?"), ("u8", "u8"), ("i8", "i8"), ("i8", "f4"), ("i4", "c16")]
)
@pytest.mark.parametrize("sparse_masks", [True, False])
def test_products_reach_the_ends_too(dtype, kind, sparse_masks):
    values = sprinkled(summable(dtype, (4, 6, 7), times=100), 0.5)  # masks go up to 42
    x = sparse_chunks(values, (3, 6, 4), "GCXS", 1)
    compare(values, x, [masks((6, 7), kind, use_sparse=sparse_masks)])


def test_long_doubles_are_made_dense_a_tile_at_a_time():
    values = sprinkled(sample("g", (3, 4, 5)), 0.5)
    x = sparse_chunks(values, (2, 4, 5), "COO", 1)
    compare(values, x, [SumUDF()])


@pytest.mark.full
@pytest.mark.parametrize("form", FORMATS)
def test_shifts_of_each_frame(form):
    values = sprinkled(sample("i2", (3, 4, 6, 7)), 0.4)
    shifts = np.random.default_rng(0).integers(-8, 8, (3, 4, 2))
    x = sparse_chunks(values, (2, 4, 3, 7), form, 2)
    for each in (shifts, shifts + 0.7):
        compare(values, x, [masks((6, 7), shifts=each), masks((6, 7), "i4", shifts=each)])


@pytest.mark.full
def test_corrected_data_are_dense():
    values = sprinkled(sample("u1", (3, 4, 6, 7)), 0.4)
    corrections = CorrectionSet(dark=np.arange(42.0).reshape(6, 7))
    x = sparse_chunks(values, (2, 4, 6, 7), "GCXS", 2)
    udfs = [SumUDF(), SumSigUDF(), CoMUDF(r=2)]
    expected = run_reference(values, udfs, corrections=corrections)
    for udf, found, wanted in zip(
        udfs, run(x, udfs, corrections=corrections), expected, strict=True
    ):
        for name, numbers in wanted.items():
            np.testing.assert_allclose(found[name], numbers, rtol=1e-5, err_msg=f"{udf} {name}")


@pytest.mark.full
@pytest.mark.parametrize("form", ["GCXS", "COO"])
def test_nan_where_something_is_stored(form):
    values = sprinkled(sample("f4", (2, 3, 9, 9)), 0.5)
    values[0, 1, 4, 4] = np.nan
    values[1, 2, 0, 0] = np.nan
    values[1, 1, 0, 1] = np.inf
    disc = functools.partial(circular, 4, 4, 9, 9, 2)
    udfs = [SumUDF(), SumSigUDF(), CoMUDF(r=2), VirtualDetectorUDF("disk", r=2)]
    udfs += [ApplyMasksUDF([disc], use_sparse=True)]
    compare(values, sparse_chunks(values, (1, 3, 9, 9), form, 2), udfs)
    with np.errstate(invalid="ignore"):
        compare(values, sparse_chunks(values, (1, 3, 9, 9), form, 2), [StdDevUDF()])


def test_zeros_count_as_frames_without_a_value():
    values = np.zeros((64, 2, 3), "f8")
    values[5, 0, 0] = values[9, 1, 2] = 1e9
    values[:, 0, 1] = 1e6 + np.random.default_rng(0).normal(size=64)
    found = run(sparse_chunks(values, (9, 2, 3), "GCXS", 1), StdDevUDF())
    np.testing.assert_allclose(found["var"], values.var(axis=0), rtol=1e-9)
    np.testing.assert_allclose(found["mean"], values.mean(axis=0), rtol=1e-14)
    assert found["num_frames"] == 64


@pytest.mark.full
def test_stored_zeros_and_frames_without_entries():
    import sparse

    entries = np.array([0, 3, 0], "i4"), np.array([1, 2, 0], "i8"), np.array([0, 0, 2, 2, 3], "i8")
    block = sparse.GCXS(entries, shape=(4, 1, 3), compressed_axes=(0,))
    meta = maker("GCXS", 1)(np.zeros((0, 1, 3), "i4"))
    x = da.zeros((4, 1, 3), dtype="i4", chunks=-1).map_blocks(lambda _: block, meta=meta)
    compare(block.todense(), x, udfs_for((1, 3), "i4")[:6])


def test_a_task_for_each_of_many_signal_chunks():
    values = sprinkled(sample("u2", (3, 4, 6, 7)), 0.4)
    x = sparse_chunks(values, (2, 4, 2, 4), "GCXS", 2)
    assert "one for each signal chunk" in ud.explain(x, SumSigUDF()).text
    compare(values, x, [SumSigUDF(), SumUDF()])


# nothing is made dense


@pytest.mark.full
@pytest.mark.parametrize("form", [*FORMATS, *MATRIX_FORMATS])
@pytest.mark.parametrize("roi", [None, np.s_[1:3]])
def test_nothing_is_made_dense(form, roi, monkeypatch):
    values = sprinkled(sample("u2", (4, 3, 6, 7)), 0.3)
    if form in MATRIX_FORMATS:
        values, n_nav, chunks = as_matrix(values, 2), 1, (5, 20)
    else:
        n_nav, chunks = 2, (2, 3, 3, 7)
    udfs = udfs_for(values.shape[n_nav:], "u2")
    sig_dims = values.ndim - n_nav
    expected = run_reference(values, udfs, sig_dims=sig_dims, roi=roi)
    x = dask.persist(sparse_chunks(values, chunks, form, n_nav))[0]
    with raise_if_dask_computes():
        lazy = ud.run_udf(x, udfs, sig_dims=sig_dims, roi=roi)
    with monkeypatch.context() as fenced:
        made = forbid_dense(fenced)
        found = ud.compute(*lazy, **SYNC)
    for udf, results, wanted in zip(udfs, found, expected, strict=True):
        check(results, wanted, udf, "u2")
    as_it_is = form == "GCXS" or form.startswith("csr")
    if as_it_is and roi is None:
        assert made == []
    elif form.startswith("csc") and roi is None:
        # once for each piece that the UDFs look at, not for each of them
        assert len(made) <= 2 * x.npartitions


def test_the_fence_holds(monkeypatch):
    x = sparse_chunks(np.eye(6, dtype="u2").reshape(6, 2, 3), (3, 2, 3), "GCXS", 1)
    forbid_dense(monkeypatch)
    with pytest.raises(AssertionError):
        ud.run_udf(x, SumUDF(), backends="numpy").compute(**SYNC)


@pytest.mark.full
@pytest.mark.parametrize("form", ["GCXS", "csr_array", "COO"])
def test_memory_in_proportion_to_the_entries(form):
    """Dense, the chunk would take 100 times what is stored; a fifth of that is not allowed."""
    rng = np.random.default_rng(0)
    values = np.zeros((4000, 64 * 64), "u2")
    values.reshape(-1)[rng.integers(0, values.size, values.size // 500)] = 3
    sig_dims = 1 if form == "csr_array" else 2
    values = values if sig_dims == 1 else values.reshape(-1, 64, 64)
    n_entries = np.count_nonzero(values)
    block = maker(form, 1)(values)
    udfs = [u for u in udfs_for(values.shape[1:], "u2") if not isinstance(u, PickUDF)]
    recipe = make_recipe(
        udfs,
        shape=values.shape,
        dtype="u2",
        sig_dims=sig_dims,
        native=backend_named(backend_name(form)),
    )
    run_chunk(recipe, 0, [block])  # compiles, and makes the masks
    tracemalloc.start()
    try:
        payload = run_chunk(recipe, 0, [block])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    results = sum(a.nbytes for partial in payload for a in partial.arrays.values())
    assert values.nbytes > 100 * 6 * n_entries
    assert peak - results < 40 * n_entries + 2**20 < values.nbytes / 5


def backend_name(form):
    return {
        "GCXS": ud.UDF.BACKEND_SPARSE_GCXS,
        "COO": ud.UDF.BACKEND_SPARSE_COO,
        "csr_array": ud.UDF.BACKEND_SCIPY_CSR_ARRAY,
    }[form]


# what a class is given


class Brightest(SumUDF):
    """A subclass that has NumPy arrays in mind."""

    def process_tile(self, tile):
        assert isinstance(tile, np.ndarray)
        self.results.intensity[:] += np.where(tile > 100, tile, 0).sum(axis=0, dtype="i8")


class Angle(CoMUDF):
    """A subclass that leaves processing alone."""

    def get_field_results(self, field_y, field_x):
        return {**super().get_field_results(field_y, field_x), "magnitude": field_y}


class ByFrame(SumUDF):
    """A subclass that goes frame by frame."""

    def get_method(self):
        return self.UDF_METHOD.FRAME

    def process_frame(self, frame):
        assert isinstance(frame, np.ndarray)
        self.results.intensity[:] += frame


class Doubled(SumUDF):
    """A subclass that says that it takes sparse tiles."""

    def get_backends(self):
        return (self.BACKEND_SPARSE_GCXS, self.BACKEND_NUMPY)

    def process_tile(self, tile):
        assert self.meta.array_backend == self.BACKEND_SPARSE_GCXS
        super().process_tile(tile)
        super().process_tile(tile)


@pytest.fixture
def scan():
    values = sprinkled(sample("u2", (3, 4, 6, 7)), 0.4)
    return values, sparse_chunks(values, (2, 4, 3, 7), "GCXS", 2)


@pytest.mark.parametrize("cls", [Brightest, ByFrame])
def test_a_subclass_that_processes_gets_dense_tiles(cls, scan):
    values, x = scan
    compare(values, x, [cls()])


def test_a_subclass_that_does_not_process_stays_sparse(scan, monkeypatch):
    values, x = scan
    (expected,) = run_reference(values, [Angle()])
    (x,) = dask.persist(x)
    made = forbid_dense(monkeypatch)
    found = run(x, Angle())
    assert not made
    np.testing.assert_allclose(found["magnitude"], expected["magnitude"])


def test_a_subclass_that_asks_gets_sparse_tiles(scan):
    values, x = scan
    found = run(x, Doubled())
    np.testing.assert_array_equal(found["intensity"], 2 * values.sum(axis=(0, 1), dtype="u8"))


def test_a_method_put_on_the_instance_gets_dense_tiles(scan):
    values, x = scan

    class Patched(SumUDF):
        def __init__(self, dtype=None):
            super().__init__(dtype)
            self.process_tile = self._own

        def _own(self, tile):
            self.results.intensity[:] += np.asarray(tile).sum(axis=0, dtype="i8")

    found = run(x, Patched())
    np.testing.assert_array_equal(found["intensity"], values.sum(axis=(0, 1), dtype="u8"))


@pytest.mark.full
@pytest.mark.parametrize("udf", [SumUDF(), SumSigUDF(), CoMUDF(), StdDevUDF()], ids=repr)
def test_backends_restricts(udf, scan):
    values, x = scan
    (expected,) = run_reference(values, [udf])
    for backends in ("numpy", ud.UDF.BACKEND_SPARSE_COO, ud.UDF.BACKEND_SPARSE_GCXS):
        check(run(x, udf, backends=backends), expected, udf, "u2")


@pytest.mark.parametrize("name", [ud.UDF.BACKEND_SCIPY_CSC, ud.UDF.BACKEND_SCIPY_COO])
def test_masks_in_a_format_that_was_asked_for(name, scan):
    values, x = scan
    compare(values, x, [masks((6, 7), backends=(name,)), masks((6, 7), backends="numpy")])
