"""Masks as users hold them: arrays, stacks, lists, names; as weights and as detectors."""

from functools import partial

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
import sparse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import udfdask as ud
from suites import examples
from udfdask.masks import circular
from udfdask.testing import assert_eq, raise_if_dask_computes
from udfdask.udfs import ApplyMasksUDF, VirtualDetectorUDF

NAV, SIG = (4, 5), (6, 7)
DATA = np.random.default_rng(4).integers(0, 99, NAV + SIG).astype("u2")
STACK = np.random.default_rng(5).integers(0, 3, (3, *SIG))
X = da.from_array(DATA, chunks=(2, 3, 6, 4))
few = settings(max_examples=examples(40), suppress_health_check=list(HealthCheck))

FORMS = {
    "stack": lambda stack: stack,
    "list": list,
    "tuple": tuple,
    "function": lambda stack: partial(np.copy, stack),
    "names": lambda stack: {f"mask {k}": mask for k, mask in enumerate(stack)},
    "functions": lambda stack: [partial(np.copy, mask) for mask in stack],
    "functions and arrays": lambda stack: [stack[0], *(partial(np.copy, m) for m in stack[1:])],
    "sparse stack": sparse.COO.from_numpy,
    "sparse masks": lambda stack: [sparse.GCXS.from_numpy(mask) for mask in stack],
    "other order in memory": np.asfortranarray,
}


def sums(data, stack):
    axes = "abc"[: stack.ndim - 1]
    return np.einsum(f"...{axes},m{axes}->...m", data.astype("i8"), stack.astype("i8"))


@few
@given(
    form=st.sampled_from(sorted(FORMS)),
    sig=st.lists(st.integers(1, 4), min_size=1, max_size=3),
    count=st.integers(1, 3),
    seed=st.integers(0, 99),
)
def test_every_form_gives_the_same_products(form, sig, count, seed):
    """A stack of masks for frames of one axis has as many axes as one mask for frames of two."""
    rng = np.random.default_rng(seed)
    data, stack = rng.integers(0, 9, (3, *sig)), rng.integers(-2, 3, (count, *sig))
    udf = ApplyMasksUDF(FORMS[form](stack))
    found = ud.run_udf(da.from_array(data, chunks=2), udf, sig_dims=len(sig)).compute()
    np.testing.assert_array_equal(found["intensity"], sums(data, stack))


@pytest.mark.parametrize(
    "hold",
    [np.asarray, sp.csr_matrix, sp.coo_array, sparse.COO.from_numpy, sparse.GCXS.from_numpy],
)
def test_one_mask(hold):
    found = ud.run_udf(X, ApplyMasksUDF(hold(STACK[0]))).compute()["intensity"]
    np.testing.assert_array_equal(found, sums(DATA, STACK[:1]))


def test_rows_of_a_sparse_matrix_are_masks_of_spectra():
    rows = sp.csr_matrix(STACK[:, 0])
    found = ud.run_udf(X, ApplyMasksUDF(rows), sig_dims=1).compute()["intensity"]
    np.testing.assert_array_equal(found, sums(DATA, STACK[:, 0]))


@pytest.mark.parametrize("form", FORMS)
def test_equal_masks_give_equal_names(form):
    def name(stack):
        return ud.run_udf(X, ApplyMasksUDF(FORMS[form](stack)))["intensity"].name

    other = STACK.copy()
    other[1, 2, 3] += 1
    assert name(STACK) == name(STACK.copy())
    assert len({name(STACK), name(other), name(STACK[::-1]), name(STACK.astype("i2"))}) == 4


def test_the_order_of_a_square_mask_and_names_count():
    square = np.arange(16).reshape(4, 4)
    x = da.ones((2, 4, 4), chunks=1)
    masks = [square, square.T, {"a": square}, {"b": square}]
    assert len({ud.run_udf(x, ApplyMasksUDF(mask))["intensity"].name for mask in masks}) == 4


@pytest.mark.parametrize("udf", [ApplyMasksUDF, VirtualDetectorUDF])
def test_a_large_mask_is_sent_once_and_not_with_each_task(udf):
    import cloudpickle
    import dask

    mask = np.ones((512, 512), bool)
    x = da.zeros((50, 512, 512), chunks=(1, 512, 512), dtype="u1")
    (graph,) = dask.optimize(ud.run_udf(x, udf(mask))["intensity"])
    large = [
        key for key, task in dict(graph.dask).items() if len(cloudpickle.dumps(task)) > mask.nbytes
    ]
    assert len(large) == 1


@pytest.mark.parametrize("udf", [ApplyMasksUDF, VirtualDetectorUDF])
def test_a_run_has_the_mask_of_the_call(udf):
    mask = np.zeros(SIG, bool)
    mask[2] = True
    run = ud.run_udf(X, udf(mask))
    mask[:] = True
    np.testing.assert_array_equal(
        run.compute()["intensity"].reshape(NAV), DATA[:, :, 2].sum(axis=-1)
    )


class TestNames:
    UDF = ApplyMasksUDF({"BF": STACK[0], "ADF": partial(np.copy, STACK[1])})
    WANT = sums(DATA, STACK)

    def test_each_is_a_result(self):
        with raise_if_dask_computes():
            lazy = ud.run_udf(X, self.UDF, roi=np.s_[1:3])
            assert lazy["ADF"].shape == NAV
        for run in (lazy, lazy.compute()):
            for k, name in enumerate(("BF", "ADF")):
                for of in (run, run.raw, run.valid_mask):
                    assert_eq(of[name], of["intensity"][..., k])
            assert "BF" in run
            assert "bf" not in run
            assert list(run) == ["intensity"]
        np.testing.assert_array_equal(lazy["BF"][1:3], self.WANT[1:3, :, 0])
        np.testing.assert_array_equal(lazy.compute().masked["BF"].mask, lazy.valid_mask["BF"] == 0)

    def test_in_xarray(self):
        pytest.importorskip("xarray", reason="xarray is an extra")
        dataset = ud.run_udf(X, self.UDF).to_xarray()
        np.testing.assert_array_equal(
            dataset["intensity"].sel(mask=["ADF", "BF"]), self.WANT[..., [1, 0]]
        )

    def test_several_are_computed_in_one_pass(self):
        result = ud.run_udf(X, self.UDF)
        done = ud.compute(result["BF"], result["ADF"])
        np.testing.assert_array_equal(np.stack(done, axis=-1), self.WANT[..., :2])

    def test_names_that_are_none(self):
        with pytest.raises(ud.ArgumentTypeError, match=r"name of a mask must be a text.*not 3"):
            ApplyMasksUDF({3: STACK[0]})
        with pytest.raises(ud.ArgumentValueError, match="cannot be called 'intensity'"):
            ApplyMasksUDF({"intensity": STACK[0]})
        with pytest.raises(ud.ArgumentValueError, match="mask_factories is empty"):
            ApplyMasksUDF({})
        result = ud.run_udf(X, self.UDF)
        with pytest.raises(ud.UndeclaredBufferError, match=r"no result 'HAADF'.*\['BF', 'ADF'\]"):
            result["HAADF"]

    def test_a_name_has_one_mask(self):
        with pytest.raises(ud.ArgumentValueError, match=r"shape \(3, 6, 7\), but a frame"):
            ud.run_udf(X, ApplyMasksUDF({"all": STACK}))


@pytest.mark.parametrize(
    ("masks", "error"),
    [
        ([[1, 2], [3, 4]], TypeError),
        ({"BF": 3}, TypeError),
        (da.ones(SIG), TypeError),
        ([da.ones(SIG)], TypeError),
        (np.ma.masked_array(STACK[0]), TypeError),
        (np.ones(SIG, object), TypeError),
        (np.ones(7), ValueError),
        (np.ones((2, 2, 6, 7)), ValueError),
        (np.ones((7, 6)), ValueError),
        (np.ones((0, 6, 7)), ValueError),
    ],
    ids=lambda value: type(value).__name__,
)
def test_masks_that_are_none(masks, error):
    with raise_if_dask_computes(), pytest.raises(error):
        ud.run_udf(X, ApplyMasksUDF(masks))


class TestDetectors:
    MASK = STACK[0] > 0

    @pytest.mark.parametrize("chunks", [(4, 5, 6, 7), (2, 3, 4, 3)])
    @pytest.mark.parametrize(
        "hold",
        [
            np.asarray,
            np.asfortranarray,
            sp.csr_matrix,
            sparse.COO.from_numpy,
            lambda mask: mask.astype("f4"),
        ],
    )
    def test_a_mask_is_a_detector(self, hold, chunks):
        x = da.from_array(DATA, chunks=chunks)
        found = ud.run_udf(x, VirtualDetectorUDF(hold(self.MASK))).compute()["intensity"]
        np.testing.assert_array_equal(found, DATA[..., self.MASK].sum(axis=-1))

    def test_of_spectra(self):
        found = ud.run_udf(X, VirtualDetectorUDF(self.MASK[1]), sig_dims=1).compute()["intensity"]
        np.testing.assert_array_equal(found, DATA[..., self.MASK[1]].sum(axis=-1))

    def test_a_disk_and_its_mask_are_the_same(self):
        mask = circular(3, 3, 7, 6, radius=2)
        one, other = ud.run_udf(X, [VirtualDetectorUDF(r=2), VirtualDetectorUDF(mask)])
        assert_eq(one["intensity"], other["intensity"])

    @pytest.mark.parametrize(
        ("mask", "error"),
        [
            (np.ones((7, 6), bool), ValueError),
            (STACK, ValueError),
            (STACK[0] * 2.5, ValueError),
            (np.full(SIG, np.nan), ValueError),
            (np.zeros(SIG, bool), ValueError),
            (np.zeros(SIG, "U1"), TypeError),
            (da.ones(SIG, dtype=bool), TypeError),
            (np.ma.masked_array(STACK[0]), TypeError),
        ],
        ids=range(8),
    )
    def test_masks_that_are_none(self, mask, error):
        with raise_if_dask_computes(), pytest.raises(error):
            ud.run_udf(X, VirtualDetectorUDF(mask))

    def test_a_mask_takes_no_numbers(self):
        with pytest.raises(ud.ArgumentTypeError, match="takes no numbers, but r was given"):
            VirtualDetectorUDF(self.MASK, r=3)

    def test_frames_of_three_axes(self):
        with pytest.raises(ud.ArgumentValueError, match=r"use ApplyMasksUDF\(mask\)"):
            ud.run_udf(X, VirtualDetectorUDF(np.ones(DATA.shape[1:], bool)), sig_dims=3)


@pytest.mark.parametrize("udf", [ApplyMasksUDF, VirtualDetectorUDF])
def test_what_only_an_accessor_can_read(udf):
    xr = pytest.importorskip("xarray", reason="xarray is an extra")
    mask = xr.DataArray(np.ones(SIG, bool), dims=("ky", "kx"))
    with pytest.raises(ud.ArgumentTypeError, match=r"DataArray .*data_array\.udf.*mask\.values"):
        ud.run_udf(X, udf(mask))
