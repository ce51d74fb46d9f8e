"""ApplyMasksUDF: numbers, dtypes, shifts, where masks are computed, and mistakes."""

import itertools
from functools import partial

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
import sparse

import udfdask as ud
from counted_masks import CALLS, counted, ones
from udfdask.masks import window
from udfdask.testing import raise_if_dask_computes
from udfdask.udfs import ApplyMasksUDF

RNG = np.random.default_rng(11)
NAV, SIG = (4, 5), (12, 14)
GRIDS = [(4, 5, 12, 14), (3, 2, 12, 14), (2, 5, 5, 14), (1, 3, 7, 4)]

DATA_DTYPES = ["?", "i1", "u1", "u2", "i2", ">u2", "i4", "u4", "i8", "f2", "f4", ">f4", "f8", "c8"]
MASK_DTYPES = ["?", "u1", "i2", "i8", "f4", "f8", "c8", "c16"]


def numbers(dtype, shape, fill=1.0):
    """Small whole numbers, some imaginary, of which a part `fill` is not 0."""
    kind = np.dtype(dtype).kind
    values = RNG.integers(0 if kind in "bu" else -9, 10, shape).astype(
        complex if kind == "c" else float
    )
    if kind == "c":
        values += 1j * RNG.integers(-9, 10, shape)
    return np.where(RNG.random(shape) < fill, values, 0).astype(dtype)


def reference(data, stack, axes="yx"):
    """The products in int64, float64 or complex128."""
    both = np.result_type(data, stack)
    wide = {"c": np.complex128, "f": np.float64}.get(both.kind, np.zeros(1, both).sum().dtype)
    return np.einsum(f"...{axes},m{axes}->...m", data.astype(wide), stack.astype(wide))


def shifted(data, stack, shifts):
    """The products with masks shifted frame by frame, as the formula says, pixel by pixel."""
    out = np.zeros((*data.shape[:2], len(stack)))
    for y, x in itertools.product(range(data.shape[2]), range(data.shape[3])):
        for here in np.ndindex(data.shape[:2]):
            my, mx = y - int(shifts[here][0]), x - int(shifts[here][1])
            if 0 <= my < stack.shape[1] and 0 <= mx < stack.shape[2]:
                out[here] += data[(*here, y, x)] * stack[:, my, mx]
    return out


def run(data, udf, chunks=None, sig_dims=2, **options):
    x = da.from_array(data, chunks=data.shape if chunks is None else chunks)
    lazy = ud.run_udf(x, udf, sig_dims=sig_dims, **options)
    done = lazy.compute(scheduler="sync")
    assert done["intensity"].dtype == lazy["intensity"].dtype
    assert done["intensity"].shape == lazy["intensity"].shape
    return done["intensity"]


def assert_same(got, want):
    """Integers agree exactly, the others to the precision of the result."""
    if want.dtype.kind in "iu":
        assert got.dtype.kind in "iu"
        np.testing.assert_array_equal(got, want)
    else:
        assert got.dtype.kind == want.dtype.kind
        tolerance = 1e-5 if got.dtype in (np.float32, np.complex64) else 1e-12
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance * 100)


class TestNumbers:
    @pytest.mark.full
    @pytest.mark.parametrize("mask_dtype", MASK_DTYPES)
    @pytest.mark.parametrize("dtype", DATA_DTYPES)
    def test_dtypes(self, dtype, mask_dtype):
        data = numbers(dtype, NAV + SIG)
        for fill, use_sparse in itertools.product((0.1, 1.0), (True, False)):
            stack = numbers(mask_dtype, (3, *SIG), fill)
            got = run(data, ApplyMasksUDF(lambda s=stack: s, use_sparse=use_sparse))
            want = reference(data, stack)
            assert_same(got, want)
            both = np.result_type(data, stack).newbyteorder("=")
            if both.kind in "biu":
                assert got.dtype == np.int64
            else:
                assert got.dtype == (np.float32 if both == np.float16 else both)

    @pytest.mark.full
    @pytest.mark.parametrize("use_sparse", [None, True, False, "scipy.sparse.csc", "sparse.pydata"])
    @pytest.mark.parametrize("chunks", GRIDS)
    @pytest.mark.parametrize("dtype", ["u2", "f4"])
    def test_chunks(self, chunks, use_sparse, dtype):
        data, stack = numbers(dtype, NAV + SIG), numbers("f4", (7, *SIG), 0.3)
        roi = RNG.random(NAV) < 0.6
        udf = ApplyMasksUDF(lambda: stack, use_sparse=use_sparse)
        want = reference(data, stack)
        assert_same(run(data, udf, chunks), want)
        got = run(data, udf, chunks, roi=roi)
        assert_same(got[roi], want[roi])
        assert np.isnan(got[~roi]).all()

    @pytest.mark.parametrize(
        "factories",
        [
            lambda s: lambda: s,
            lambda s: [partial(s.__getitem__, i) for i in range(len(s))],
            lambda s: tuple(partial(lambda i: sp.csr_matrix(s[i]), i) for i in range(len(s))),
            lambda s: lambda: sparse.COO.from_numpy(s),
            lambda s: [lambda: s[0], lambda: sp.csc_array(s[1]), *([lambda: s[2]] * (len(s) - 2))],
        ],
        ids=["stack", "list", "tuple of CSR", "COO stack", "mixed list"],
    )
    def test_kinds_of_factories(self, factories):
        data, stack = numbers("i4", NAV + SIG), numbers("i4", (3, *SIG), 0.2)
        assert_same(run(data, ApplyMasksUDF(factories(stack))), reference(data, stack))

    @pytest.mark.full
    @pytest.mark.parametrize("n", [1, 7, 8, 9, 31, 32, 33, 70])
    @pytest.mark.parametrize("fill", [0.02, 0.9])
    @pytest.mark.parametrize("dtype", ["u2", "f8", "c16"])
    def test_numbers_of_frames_in_a_tile(self, n, fill, dtype):
        """Kernels take frames by eight, and by 32 where masks are dense."""
        data, stack = numbers(dtype, (n, *SIG)), numbers("i2", (9, *SIG), fill)
        got = run(data, ApplyMasksUDF(lambda: stack, use_sparse=True))
        assert_same(got, reference(data, stack))

    @pytest.mark.parametrize("dtype", ["u1", "u2", "i2", "u4", "i4", "u8", "i8"])
    @pytest.mark.parametrize("masks", ["?", "u1", "i4"])
    @pytest.mark.parametrize("use_sparse", [True, False])
    def test_large_integers_are_exact(self, dtype, masks, use_sparse):
        if np.result_type(dtype, masks).kind == "f":
            pytest.skip("NumPy multiplies uint64 and signed integers as floats")
        data = np.full((3, 40, 40), np.iinfo(dtype).max, dtype=dtype)
        data.flat[::7] = np.iinfo(dtype).min
        high = 1 if masks == "?" else np.iinfo(masks).max
        stack = np.where(RNG.random((2, 40, 40)) < 0.9, high, high // 2).astype(masks)
        wanted = reference(data, stack)  # which wraps around, as sums in NumPy do
        exact = data.reshape(3, -1).astype(object) @ stack.reshape(2, -1).astype(object).T
        udf = ApplyMasksUDF(lambda: stack, use_sparse=use_sparse)
        if (exact == wanted).all():
            assert_same(run(data, udf), wanted)
        else:
            with pytest.raises(ud.SumOverflowError, match=f"does not fit {wanted.dtype}"):
                run(data, udf)

    def test_wide_frames(self):
        """More pixels than are converted at a time, and no multiple of that."""
        data, stack = numbers("u2", (3, 300, 401)), numbers("?", (5, 300, 401))
        data *= 7000
        for masks in (stack, stack.astype("f8")):
            got = run(data, ApplyMasksUDF(lambda m=masks: m, use_sparse=False), (2, 300, 401))
            assert_same(got, reference(data, masks))

    @pytest.mark.parametrize("dtype", ["g", "G"])
    @pytest.mark.parametrize("use_sparse", [None, True, False])
    def test_long_doubles(self, dtype, use_sparse):
        data, stack = numbers(dtype, NAV + SIG), numbers("f4", (3, *SIG), 0.1)
        got = run(data, ApplyMasksUDF(lambda: stack, use_sparse=use_sparse))
        assert got.dtype == np.dtype(dtype)
        assert_same(got, reference(data, stack))

    @pytest.mark.parametrize("sig", [(30,), (3, 4, 5), (2, 3, 2, 2)])
    def test_signals_of_other_dimensions(self, sig):
        data, stack = numbers("u2", (3, 4, *sig)), numbers("f8", (2, *sig))
        axes = "abcd"[: len(sig)]
        got = run(data, ApplyMasksUDF(lambda: stack), (2, 2, *(2 for _ in sig)), sig_dims=len(sig))
        assert_same(got, reference(data, stack, axes))

    @pytest.mark.parametrize("nav", [(), (6,), (2, 3, 2)])
    def test_navigation_of_other_dimensions(self, nav):
        data, stack = numbers("u2", nav + SIG), numbers("?", (2, *SIG))
        got = run(data, ApplyMasksUDF(lambda: stack))
        assert got.shape == (*nav, 2)
        assert_same(got, reference(data, stack))

    def test_steps_and_reversed_axes(self):
        data, stack = numbers("u2", NAV + SIG), numbers("f4", (2, 6, 14), 0.2)
        x = da.from_array(data, chunks=NAV + SIG)[:, ::-1, ::2, ::-1]
        for use_sparse in (True, False):
            res = ud.run_udf(x, ApplyMasksUDF(lambda: stack, use_sparse=use_sparse))
            want = reference(data[:, ::-1, ::2, ::-1], stack)
            assert_same(res["intensity"].compute(scheduler="sync"), want)

    def test_no_masks_and_empty_ones(self):
        data = numbers("u2", NAV + SIG)
        assert run(data, ApplyMasksUDF(partial(np.zeros, (0, *SIG), "f4"))).shape == (*NAV, 0)
        for use_sparse in (True, False):
            got = run(data, ApplyMasksUDF([partial(np.zeros, SIG)], use_sparse=use_sparse))
            np.testing.assert_array_equal(got, np.zeros((*NAV, 1)))

    @pytest.mark.parametrize("use_sparse", [True, False])
    def test_nan_outside_of_a_mask(self, use_sparse):
        data = np.ones((2, *SIG), dtype="f4")
        data[0, 0, 0] = np.nan
        mask = np.zeros(SIG, dtype="f4")
        mask[3, 3:5] = 1
        for chunks in ((2, *SIG), (1, 5, 5)):  # whichever part the NaN is in
            got = run(data, ApplyMasksUDF([lambda: mask], use_sparse=use_sparse), chunks)
            np.testing.assert_array_equal(got[:, 0], [2 if use_sparse else np.nan, 2])

    def test_mostly_empty_masks_are_multiplied_sparse(self):
        """As is seen by the NaN that does not count."""
        data = np.full((2, 64, 64), np.nan, dtype="f4")
        data[:, 32, 32] = 3
        few, many = np.zeros((1, 64, 64), "f4"), np.ones((1, 64, 64), "f4")
        few[0, 32, 32] = 2
        assert run(data, ApplyMasksUDF(lambda: few))[0, 0] == 6
        assert np.isnan(run(data, ApplyMasksUDF(lambda: few, use_sparse=False))[0, 0])
        assert np.isnan(run(data, ApplyMasksUDF(lambda: many))[0, 0])


class TestDtypesAskedFor:
    def test_mask_dtype(self):
        data, stack = numbers("f4", NAV + SIG), numbers("f8", (2, *SIG))
        got = run(data, ApplyMasksUDF(lambda: stack, mask_dtype="f4"))
        assert got.dtype == np.float32
        assert_same(got, reference(data, stack))

    def test_preferred_dtype(self):
        data, stack = numbers("u2", NAV + SIG), numbers("?", (2, *SIG))
        got = run(data, ApplyMasksUDF(lambda: stack, preferred_dtype=np.float32))
        assert got.dtype == np.float32
        np.testing.assert_allclose(got, reference(data, stack))

    def test_corrected_data(self):
        data, stack = numbers("u2", NAV + SIG), numbers("?", (2, *SIG))
        dark = numbers("f4", SIG)
        x = da.from_array(data, chunks=(2, 5, 12, 14))
        got = ud.run_udf(
            x, ApplyMasksUDF(lambda: stack), corrections=ud.corrections.CorrectionSet(dark=dark)
        )["intensity"]
        assert got.dtype == np.float32
        np.testing.assert_allclose(got, reference(data - dark, stack), rtol=1e-5, atol=1e-3)


class TestShifts:
    DATA, STACK = numbers("u2", NAV + SIG), numbers("i2", (3, *SIG))

    @pytest.mark.parametrize("chunks", GRIDS)
    @pytest.mark.parametrize("shift", [(0, 0), (2, -3), (-11, 13), (12, 0), (0, -14), (99, -99)])
    @pytest.mark.parametrize("use_sparse", [True, False])
    def test_one_for_all(self, chunks, shift, use_sparse):
        udf = ApplyMasksUDF(lambda: self.STACK, shifts=shift, use_sparse=use_sparse)
        want = shifted(self.DATA, self.STACK, np.broadcast_to(shift, (*NAV, 2)))
        np.testing.assert_array_equal(run(self.DATA, udf, chunks), want)

    @pytest.mark.filterwarnings("ignore:a task takes 8 signal chunks")
    @pytest.mark.parametrize("chunks", GRIDS)
    @pytest.mark.parametrize("dtype", ["i4", "f4", "f8", "u1"])
    @pytest.mark.parametrize("use_sparse", [True, False])
    def test_one_for_each(self, chunks, dtype, use_sparse):
        shifts = RNG.integers(0 if dtype == "u1" else -15, 16, (*NAV, 2)).astype(dtype)
        if np.dtype(dtype).kind == "f":
            shifts += RNG.random(shifts.shape).astype(dtype)  # cut off towards 0
        aux = ud.UDF.aux_data(shifts, "nav", (2,), dtype)
        udf = ApplyMasksUDF(lambda: self.STACK, shifts=aux, use_sparse=use_sparse)
        want = shifted(self.DATA, self.STACK, shifts)
        np.testing.assert_array_equal(run(self.DATA, udf, chunks), want)
        roi = RNG.random(NAV) < 0.5
        got = run(self.DATA, udf, chunks, roi=roi)
        np.testing.assert_array_equal(got[roi], want[roi])

    def test_an_array_will_do(self):
        shifts = RNG.integers(-5, 6, (*NAV, 2))
        want = shifted(self.DATA, self.STACK, shifts)
        for given in (shifts, da.from_array(shifts, chunks=(1, 5, 1))):
            udf = ApplyMasksUDF(lambda: self.STACK, shifts=given)
            np.testing.assert_array_equal(run(self.DATA, udf, (2, 2, 5, 14)), want)

    @pytest.mark.parametrize("given", [[1, -2], np.array([1.9, -2.9]), (np.int8(1), -2.0)])
    def test_ways_to_write_a_pair(self, given):
        want = shifted(self.DATA, self.STACK, np.broadcast_to((1, -2), (*NAV, 2)))
        np.testing.assert_array_equal(
            run(self.DATA, ApplyMasksUDF(lambda: self.STACK, shifts=given)), want
        )

    def test_what_is_not_overlapped_does_not_count(self):
        data = np.full((2, 4, 4), np.nan, dtype="f4")
        data[:, 2:, :] = 1
        for shifts in ((2, 0), np.full((2, 2), (2, 0))):
            udf = ApplyMasksUDF(partial(np.ones, (1, 4, 4), "f4"), shifts=shifts, use_sparse=False)
            np.testing.assert_array_equal(run(data, udf), np.full((2, 1), 8))

    def test_spectra(self):
        data = numbers("u2", (3, 20))
        shifts = np.array([[0], [3], [-4]])
        udf = ApplyMasksUDF([partial(window, 5, 9, size=20)], shifts=shifts)
        want = [data[k, 5 + s : 9 + s].sum() for k, (s,) in enumerate(shifts)]
        np.testing.assert_array_equal(run(data, udf, (1, 7), sig_dims=1)[:, 0], want)

    def test_infinite_ones_of_frames_left_out(self):
        shifts = np.zeros((*NAV, 2))
        shifts[1, 1] = np.nan
        udf = ApplyMasksUDF(lambda: self.STACK, shifts=shifts)
        with pytest.raises(ud.UDFError, match=r"shifts must be finite, .* not \(nan, nan\)"):
            run(self.DATA, udf)
        roi = np.ones(NAV, bool)
        roi[1, 1] = False
        np.testing.assert_array_equal(
            run(self.DATA, udf, roi=roi)[roi], reference(self.DATA, self.STACK)[roi]
        )

    @pytest.mark.parametrize(
        ("given", "error"),
        [
            ((1, 2, 3), ValueError),
            (np.zeros((*NAV, 1)), ValueError),
            ((1, np.inf), ValueError),
            ("yx", TypeError),
            ((1, (2, 3)), TypeError),
            ((), TypeError),
            (ud.UDF.aux_data(np.zeros(SIG, "f4"), "sig"), ValueError),
            (ud.UDF.aux_data(np.zeros(NAV, "f4"), "nav"), ValueError),
            (np.zeros((*NAV, 2), complex), TypeError),
            (np.zeros((3, 2)), ValueError),
        ],
    )
    def test_mistakes(self, given, error):
        x = da.from_array(self.DATA)
        with pytest.raises(error):
            ud.run_udf(x, ApplyMasksUDF(lambda: self.STACK, shifts=given))


class TestMistakes:
    X = da.zeros(NAV + SIG, chunks=(2, 5, 6, 14), dtype="u2")

    @pytest.mark.parametrize("shape", [(12, 13), (13, 14), (40, 40), (11, 14)])
    def test_a_wrong_shape_is_found_in_the_plan(self, shape):
        with pytest.raises(
            ud.ArgumentValueError,
            match=rf"masks have the shape \({shape[0]}, {shape[1]}\), but a frame .* \(12, 14\)",
        ):
            ud.run_udf(self.X, ApplyMasksUDF([partial(np.ones, shape)]))
        with pytest.raises(ud.ArgumentValueError, match=r"but a frame .* \(12, 14\)"):
            ud.run_udf(self.X, ApplyMasksUDF([partial(np.ones, shape)], mask_dtype="f4"))

    @pytest.mark.parametrize("shape", [(40, 40), (11, 14)])
    def test_or_with_the_first_chunk(self, shape):
        udf = ApplyMasksUDF([partial(np.ones, shape)], mask_dtype="f4", mask_count=1)
        lazy = ud.run_udf(self.X, udf)
        with pytest.raises(ud.ArgumentValueError, match=r"but a frame has the shape \(12, 14\)"):
            lazy.compute(scheduler="sync")

    @pytest.mark.parametrize(
        ("how", "error"),
        [
            ({"mask_factories": 3}, TypeError),
            ({"mask_factories": []}, ValueError),
            ({"mask_factories": partial(np.ones, SIG)}, ValueError),
            ({"mask_count": 3}, ValueError),
            ({"use_sparse": "csr"}, ValueError),
            ({"mask_dtype": "nothing"}, TypeError),
            ({"mask_factories": partial(np.ones, (1, *SIG)), "mask_dtype": "i4"}, TypeError),
            ({"backends": "numby"}, ValueError),
        ],
    )
    def test_in_the_plan(self, how, error):
        with pytest.raises(error):
            ud.run_udf(self.X, ApplyMasksUDF(**{"mask_factories": [partial(np.ones, SIG)], **how}))

    def test_a_mask_dtype_is_checked_with_the_first_chunk_as_well(self):
        udf = ApplyMasksUDF([partial(np.ones, SIG)], mask_dtype="i4", mask_count=1)
        with pytest.raises(TypeError, match="would change masks"):
            ud.run_udf(self.X, udf).compute(scheduler="sync")

    def test_times(self):
        x = da.zeros(NAV + SIG, dtype="m8[s]")
        with pytest.raises(TypeError, match="cannot be multiplied with data of dtype timedelta"):
            ud.run_udf(x, ApplyMasksUDF([partial(np.ones, SIG)]))

    def test_a_wrong_count(self):
        udf = ApplyMasksUDF(partial(np.ones, (2, *SIG)), mask_count=3)
        with pytest.raises(ValueError, match="returned 2 masks, but count=3"):
            ud.run_udf(self.X, udf)


class TestInARun:
    X = da.from_array(numbers("u2", NAV + SIG), chunks=(1, 2, 6, 14))

    def test_masks_are_computed_once_in_a_process(self):
        for k, use_sparse in enumerate((None, True, False)):
            factories = [partial(counted, f"apply {k}", SIG), partial(counted, f"apply {k}", SIG)]
            udf = ApplyMasksUDF(factories, use_sparse=use_sparse)
            lazy = ud.run_udf(self.X, udf)
            assert CALLS.count(f"apply {k}") == 2  # for the dtype of the result
            lazy.compute(scheduler="threads", num_workers=4)
            ud.run_udf(self.X, udf).compute(scheduler="threads", num_workers=4)
            assert CALLS.count(f"apply {k}") == 2

    def test_the_plan_need_not_compute_them(self):
        udf = ApplyMasksUDF([partial(counted, "later", SIG)], mask_dtype="f4", mask_count=1)
        stack = ApplyMasksUDF(partial(counted, "later", (2, *SIG)), mask_dtype="f4", mask_count=2)
        with raise_if_dask_computes():
            lazy = ud.run_udf(self.X, [udf, stack])
        assert "later" not in CALLS
        ud.compute(*lazy)
        assert CALLS.count("later") == 2

    def test_the_mask_axis_has_a_name(self):
        (axis,) = ApplyMasksUDF([partial(ones, SIG)]).get_result_axes()["intensity"]
        assert axis.name == "mask"

    @pytest.mark.usefixtures("warns_of_few_data")
    def test_each_signal_chunk_has_a_task_of_its_own(self):
        x = da.zeros((4, 12, 14), chunks=(4, 2, 7), dtype="u2")
        udf = ApplyMasksUDF([partial(ones, SIG)])
        text = str(ud.run_udf(x, udf).explain())
        assert "signal chunk" in text
        shifts = np.zeros((4, 2))
        with pytest.warns(
            ud.UDFWarning, match="because ApplyMasksUDF cannot process one signal chunk"
        ):
            ud.run_udf(x, ApplyMasksUDF([partial(ones, SIG)], shifts=shifts))

    def test_a_lazy_shift(self):
        stack = numbers("i2", (2, *SIG))
        with raise_if_dask_computes():
            udf = ApplyMasksUDF(lambda: stack, shifts=da.from_array(np.array([1.0, -2.0])))
            lazy = ud.run_udf(self.X, udf)
            wrong = ApplyMasksUDF(lambda: stack, shifts=da.ones(3))
            with pytest.raises(ud.ArgumentValueError, match="shifts have 3 numbers each"):
                ud.run_udf(self.X, wrong)
        want = shifted(self.X.compute(), stack, np.broadcast_to((1, -2), (*NAV, 2)))
        np.testing.assert_array_equal(lazy["intensity"].compute(), want)
        late = ud.run_udf(self.X, ApplyMasksUDF(lambda: stack, shifts=da.full(2, np.nan)))
        with pytest.raises(ud.ArgumentValueError, match="shifts must be finite"):
            late.compute(scheduler="sync")

    def test_shifts_may_be_updated(self):
        stack = numbers("i2", (2, *SIG))
        iterator = ud.run_udf_iter(self.X, ApplyMasksUDF(lambda: stack, shifts=(0, 0)))
        iterator.update_parameters([{"shifts": (1, 2)}])
        *_, snapshot = iterator
        want = shifted(self.X.compute(), stack, np.broadcast_to((1, 2), (*NAV, 2)))
        np.testing.assert_array_equal(snapshot.buffers[0]["intensity"], want)

    def test_on_a_cluster(self, client):
        udf = ApplyMasksUDF([partial(ones, SIG)], shifts=np.ones((*NAV, 2)))
        got = client.compute(ud.run_udf(self.X, udf)["intensity"]).result()
        want = self.X[..., 1:, 1:].sum(axis=(2, 3)).compute()
        np.testing.assert_allclose(got[..., 0], want)


@pytest.mark.parametrize("use_sparse", [False, True])
@pytest.mark.parametrize("dtype", ["f4", "u2"])
@pytest.mark.parametrize("side", [128, 512])
def test_products_are_as_accurate_as_pairwise_sums(side, dtype, use_sparse):
    """Also over many pixels and frames, where plain sums in float32 are off by 1e-6 and more."""
    rng = np.random.default_rng(5)
    data = (rng.random((1, 16, side, side)) * 1000).astype(dtype)
    masks = rng.random((3, side, side), dtype="f4") + np.float32(0.5)
    udf = ApplyMasksUDF(lambda: masks, use_sparse=use_sparse)
    found = ud.run_udf(da.from_array(data, chunks=-1), udf)["intensity"].compute()
    assert found.dtype == "f4"
    exact = np.einsum("abij,mij->abm", data.astype("f8"), masks.astype("f8"))
    np.testing.assert_allclose(found, exact, rtol=2.5e-7)
