"""Chunks that differ from the announcement, or are unusual: correct results or an error."""

import dask
import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
import sparse

import udfdask as ud
from backend_udfs import Wants
from chunk_backends import ON_HOST, block_in, chunks_in
from making import SYNC, make
from udfdask.corrections import CorrectionSet
from udfdask.errors import UDFError
from udfdask.udfs import SumSigUDF, SumUDF

DATA = np.random.default_rng(0).poisson(0.5, (6, 20)).astype("f4")
NOTHING = DATA[:0, :0]
X = da.from_array(DATA, chunks=(3, 10))
MATRIX_KINDS = ["scipy.sparse.csr_array", "scipy.sparse.csc_matrix", "scipy.sparse.coo_array"]


def made_of(make, meta=NOTHING, array=X):
    return array.map_blocks(make, meta=meta)


def run(array, *udfs, **options):
    return ud.compute(*ud.run_udf(array, udfs, **{"sig_dims": 1, **options}), **SYNC)


def assert_the_numbers(array):
    wishes = [Wants(b, m) for b in ("numpy", *MATRIX_KINDS) for m in ("tile", "frame", "partition")]
    total, sums, *seen = run(array, SumUDF(), SumSigUDF(), *wishes)
    np.testing.assert_array_equal(total["intensity"], DATA.sum(axis=0))
    np.testing.assert_array_equal(sums["intensity"], DATA.sum(axis=1))
    for found in seen:
        np.testing.assert_array_equal(found["seen"], DATA)


@pytest.mark.parametrize("came", ON_HOST)
@pytest.mark.parametrize("announced", ["numpy", "sparse.COO", "scipy.sparse.csr_matrix"])
def test_another_type_than_announced(announced, came):
    blocks = made_of(lambda b: block_in(b, came, 1), block_in(NOTHING, announced, 1))
    assert_the_numbers(blocks)


def twice(block):
    """Return a CSR matrix that stores every value as two halves."""
    rows = sp.csr_array(block)
    entries = (np.repeat(rows.data / 2, 2), np.repeat(rows.indices, 2), 2 * rows.indptr)
    return sp.csr_array(entries, shape=block.shape)


def backwards(block):
    """Return a CSR matrix with the pixels of each frame in decreasing order."""
    rows = sp.csr_array(block)
    for start, stop in zip(rows.indptr, rows.indptr[1:], strict=False):
        rows.indices[start:stop] = rows.indices[start:stop][::-1].copy()
        rows.data[start:stop] = rows.data[start:stop][::-1].copy()
    rows.has_sorted_indices = False
    return rows


def with_indices(block, dtype):
    rows = sp.csr_array(np.asarray(block))
    rows.indices, rows.indptr = rows.indices.astype(dtype), rows.indptr.astype(dtype)
    return rows


MAKERS = {
    "twice in columns": lambda block: twice(block).tocsc(),  # which adds up nothing
    "twice in coordinates": lambda block: twice(block).tocoo(),
    "backwards": backwards,
    "wide indices": lambda block: with_indices(block, "i8"),
}


@pytest.mark.parametrize(
    "make",
    [
        twice,
        lambda block: with_indices(block, ">i4"),
        *(pytest.param(make, marks=pytest.mark.full, id=name) for name, make in MAKERS.items()),
    ],
)
def test_matrices_that_are_not_canonical(make):
    before = [make(DATA[:3, :10]) for _ in range(2)]
    assert_the_numbers(made_of(make, make(NOTHING)))
    held = before[0]
    run(made_of(lambda _: held, make(NOTHING)), SumUDF(), Wants(ud.UDF.BACKEND_SPARSE_COO))
    for part in ("data", "indices", "indptr"):  # the chunk itself is not put in order
        if hasattr(held, part):
            np.testing.assert_array_equal(getattr(held, part), getattr(before[1], part))


def test_a_fill_value_that_is_announced():
    meta = sparse.GCXS(sparse.COO(NOTHING, fill_value=np.nan))
    with pytest.raises(ud.ArgumentValueError, match=r"fill value .*and only 0 is supported"):
        ud.run_udf(made_of(sparse.COO, meta), SumUDF(), sig_dims=1)


@pytest.mark.parametrize("others", ["numpy", ud.UDF.BACKEND_SPARSE_GCXS, ud.UDF.BACKEND_SCIPY_CSR])
def test_a_fill_value_that_only_comes(others):
    """Test it in the first chunk, and in a later one."""

    def make(block, block_info):
        if block_info[0]["chunk-location"][1] == place:
            return sparse.COO(block, fill_value=block.dtype.type(1))
        return block_in(block, others, 1)

    for place in (0, 1):  # noqa: B007  # `make` reads it
        with pytest.raises(ud.UDFError, match=r"sparse chunk came with the fill value"):
            run(made_of(make), SumUDF())


@pytest.mark.parametrize("kind", [sp.lil_array, sp.dok_array, sp.bsr_array, sp.dia_array])
def test_formats_that_nothing_is_cut_out_of(kind):
    with pytest.raises(IndexError, match="too many indices"):
        run(made_of(kind), SumUDF())
    announced = made_of(kind)
    announced._meta = kind(NOTHING.shape, dtype="f4")
    with pytest.raises(ud.ArgumentTypeError, match=rf"are of type {kind.__name__}.*tocsr"):
        ud.run_udf(announced, SumUDF(), sig_dims=1)


def test_matrices_are_for_one_axis_each():
    announced = made_of(sp.csr_array, NOTHING, X.rechunk(-1))
    with pytest.raises(ud.UDFError, match=r"each row is a frame, but chunks have 0 navigation"):
        run(announced, SumUDF(), sig_dims=2)
    announced._meta = sp.csr_array(NOTHING.shape, dtype="f4")
    with pytest.raises(ud.ArgumentValueError, match=r"each row is a frame.*sig_dims=1, not 2 dim"):
        ud.run_udf(announced, SumUDF(), sig_dims=2)


@pytest.mark.parametrize("kind", [sparse.COO, sp.csr_array, sp.coo_array])
def test_wrong_shapes_and_dtypes(kind):
    with pytest.raises(ud.UDFError, match=r"shape \(3, 10\) was announced, but one of .*\(2, 10\)"):
        run(made_of(lambda b: kind(b[:2])), SumUDF())
    with pytest.raises(ud.UDFError, match=r"dtype float32 was announced, but one of .*complex64"):
        run(made_of(lambda b: kind(b.astype("c8"))), SumUDF())
    for fits in ("f8", "u1"):
        (found,) = run(made_of(lambda b, to=fits: kind(b.astype(to))), SumUDF())
        np.testing.assert_array_equal(found["intensity"], DATA.sum(axis=0))


@pytest.mark.parametrize("native", ["sparse.COO", "sparse.GCXS", "scipy.sparse.csr_array"])
def test_nothing_at_all(native):
    for shape in [(6, 0), (0, 20), (0, 0)]:
        x = chunks_in(da.zeros(shape, dtype="f4"), native, 1)
        total, seen = run(x, SumUDF(), Wants(ud.UDF.BACKEND_SCIPY_CSC))
        assert total["intensity"].shape == shape[1:]
        assert seen["seen"].shape == shape


@pytest.mark.parametrize("backend", sorted(ud.UDF.CPU_BACKENDS - {"numpy"}))
@pytest.mark.parametrize("dtype", ["e", "g", "M8[s]", "m8[ns]"])
def test_dtypes_that_a_format_has_not(backend, dtype):
    x = X.astype(dtype)
    has = backend in {ud.UDF.BACKEND_SPARSE_COO, ud.UDF.BACKEND_SPARSE_DOK} or dtype == "g"
    if has and dtype in "eg" and backend != ud.UDF.BACKEND_SPARSE_GCXS:
        np.testing.assert_array_equal(run(x, Wants(backend))[0]["seen"], DATA)
        return

    class Keeps(Wants):
        def get_result_buffers(self):
            return {"n": self.buffer("nav")}

    with pytest.raises(ud.ArgumentTypeError, match=rf"{backend}, which has no dtype .*restrict"):
        ud.run_udf(x, Keeps(backend), sig_dims=1)


def test_names_that_are_none():
    for backends in ["scipy", ("numpy", "lil"), [["numpy"]], []]:
        with pytest.raises(ud.ArgumentValueError, match=r"get_backends.* is no array backend"):
            ud.run_udf(X, Wants(backends), sig_dims=1)
        with pytest.raises(ud.ArgumentValueError, match=r"backends=.* is no array backend; choose"):
            ud.run_udf(X, SumUDF(), backends=backends, sig_dims=1)
    with pytest.raises(ud.ArgumentValueError, match=r"'sparse.COO', but .*backends=\('numpy',\)"):
        ud.run_udf(X, Wants("sparse.COO"), backends="numpy", sig_dims=1)


@pytest.mark.parametrize("place", [20, 10**9, -1])
@pytest.mark.parametrize("cls", [sp.csr_array, sp.csc_matrix, sp.coo_array])
def test_places_outside_of_a_matrix(cls, place):
    """SciPy accepts such indices, and compiled code would read and write there."""

    def make(block):
        made = cls(np.asarray(block))
        if cls is sp.coo_array:
            made.coords = (made.coords[0], np.full_like(made.coords[1], place))
        else:
            made.indices[0] = place
        return made

    whole = da.from_array(DATA, chunks=-1)
    for udf in (SumUDF(), SumSigUDF(), Wants("numpy", "frame")):
        with pytest.raises(UDFError, match="whose indices do not fit its shape"):
            run(made_of(make, cls((1, 1), dtype="f4")[:0, :0], whole), udf)


def masked(block):
    return np.ma.masked_greater(np.asarray(block), 0)


def test_masked_blocks_that_were_not_announced():
    for method in ("tile", "frame", "partition"):
        with pytest.raises(ud.UDFError, match=r"masked values.*np\.ma\.filled"):
            run(made_of(masked), Wants("numpy", method), SumUDF())
    assert_the_numbers(made_of(np.ma.masked_array))  # a mask that hides nothing


@pytest.mark.parametrize(
    "make",
    [np.matrix, lambda b: b.tolist(), np.asfortranarray, lambda b: b.view(">f4").byteswap()],
)
@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
def test_blocks_that_numpy_makes_an_array_of(make):
    whole = np.array(DATA)
    array = da.from_delayed(dask.delayed(lambda: make(whole))(), whole.shape, meta=NOTHING)
    assert_the_numbers(array)


@pytest.mark.parametrize(
    "block",
    [
        [[1.0, 2.0], [3.0]],
        np.float32(3),
        np.rec.fromarrays([DATA, DATA]),
    ],
)
def test_blocks_that_are_no_array_of_numbers(block):
    array = da.from_delayed(dask.delayed(lambda: block)(), DATA.shape, meta=NOTHING)
    with pytest.raises(ud.UDFError):
        run(array, SumUDF())


def weigh(self, tile):
    self.results.sums += tile.sum(axis=1) * self.params.weights


Weighted = make({"sums": {"kind": "nav", "dtype": "f8"}}, process_tile=weigh)


@pytest.mark.parametrize(
    "make",
    [
        lambda w: np.ma.masked_greater(w, 2),
        lambda w: w[:-1],
        lambda w: w.astype("M8[s]"),
    ],
)
def test_blocks_of_aux_data_that_were_not_announced(make):
    weights = np.arange(6, dtype="f4")
    lazy = da.from_array(weights, chunks=-1).map_blocks(make, meta=weights[:0])
    aux = ud.UDF.aux_data(lazy, "nav", dtype="float32")
    with pytest.raises(ud.UDFError):
        run(X.rechunk(-1), Weighted(weights=aux))
    aux = ud.UDF.aux_data(lazy, "single", extra_shape=(6,), dtype="float32")
    with pytest.raises(ud.UDFError):
        run(X.rechunk(-1), Weighted(weights=aux))


def test_lazy_parameters_that_turn_out_masked():
    dark = da.from_array(DATA[0]).map_blocks(masked, meta=NOTHING[:, :0].ravel())
    with pytest.raises(ud.UDFError, match="masked values"):
        run(X, SumUDF(), corrections=CorrectionSet(dark=dark))
    with pytest.raises(ud.UDFError, match="masked values"):
        run(X, Weighted(weights=dark))
    with pytest.raises(ud.ArgumentTypeError, match="masked array"):
        CorrectionSet(dark=da.ma.masked_greater(da.from_array(DATA[0]), 1))
