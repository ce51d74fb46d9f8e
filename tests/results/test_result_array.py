"""Arrays of computed results: plain for NumPy and every library, with LiberTEM's attributes."""

import copy
import gc
import pickle
import weakref

import dask.array as da
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import udfdask as ud
from udfdask.results.result_array import ResultArray
from udfdask.testing.strategies import rois
from udfdask.udfs import ApplyMasksUDF, CoMUDF, StdDevUDF, SumSigUDF, SumUDF

SYNC = {"scheduler": "synchronous"}
DATA = np.random.default_rng(0).integers(0, 50, (3, 4, 5, 6)).astype(np.uint16)
X = da.from_array(DATA, chunks=(2, 3, 5, 6))
SUMS = DATA.sum(axis=(2, 3), dtype=np.int64)


def computed(udf=None, **options):
    """A computed result."""
    return ud.run_udf(X, SumSigUDF() if udf is None else udf, **options).compute(**SYNC)


def sums():
    """A result and the same values as a plain array, both of their own memory."""
    return computed()["intensity"], SUMS.copy()


def assert_plain(found, wanted):
    """The same values of the same types, and no array of a result."""
    assert type(found) is type(wanted) is not ResultArray
    if isinstance(wanted, (tuple, list)):
        for one, other in zip(found, wanted, strict=True):
            assert_plain(one, other)
        return
    np.testing.assert_array_equal(found, wanted)
    assert getattr(found, "dtype", None) == getattr(wanted, "dtype", None)


FORMS = {
    "operators": lambda a: (a + 1, 1 + a, a * a, -a, a @ a.T, a == a, a > 3, a // 2, a % 7, a**2),
    "parts": lambda a: (a[1], a[1, 2], a[:, ::2], a[a > 300], a[None], a[[0, 2]], a[..., 0]),
    "loops": list,
    "attributes": lambda a: (a.T, a.mT, a.real, a.imag, a.flat[2:5], a.shape, a.dtype, a.nbytes),
    "copies": lambda a: (a.copy(), copy.copy(a), copy.deepcopy(a), a.astype("f4"), a.view()),
    "shapes": lambda a: (a.reshape(-1), a.ravel(), a.transpose(), a.swapaxes(0, 1), a.squeeze()),
    "sums": lambda a: (a.sum(), a.sum(0), np.sum(a, axis=1), a.mean(), a.max(0), a.cumsum()),
    "search": lambda a: (a.argmax(), a.nonzero(), a.argsort(), np.unique(a)),
    "joined": lambda a: (np.concatenate([a, a]), np.stack([a, a]), np.where(a > 3, a, 0)),
    "like": lambda a: (np.zeros_like(a), np.full_like(a, 2), np.broadcast_to(a, (2, 3, 4))),
    "algebra": lambda a: (np.dot(a, a.T), np.einsum("ij->i", a), np.linalg.norm(a)),
    "factors": lambda a: tuple(np.linalg.svd(a)),
    "fft": lambda a: (np.fft.fft2(a), np.gradient(a.astype(float)), np.percentile(a, 30, axis=0)),
    "ufuncs": lambda a: (np.add.reduce(a), np.add.outer(a, a), np.add(a, 1, out=a.copy())),
    "masked": lambda a: (np.ma.array(a).data, (np.ma.masked_less(a, 400) + 1).filled(0)),
    "as an array": lambda a: (np.asarray(a), np.array(a), np.ascontiguousarray(a)),
    "pickles": lambda a: tuple(pickle.loads(pickle.dumps(a, n)) for n in range(6)),
    "text": lambda a: (repr(a), str(a), f"{a[0, 0]}", repr(a.tolist())),
}


@pytest.mark.parametrize("name", FORMS)
def test_what_is_made_of_it_is_plain(name):
    found, wanted = (FORMS[name](a) for a in sums())
    assert_plain(found, wanted)


def test_it_is_the_memory_of_the_result():
    result = computed()
    array = result["intensity"]
    assert result["intensity"] is array
    assert isinstance(array, np.ndarray)
    array[0, 0] = 7
    array += 1
    assert type(array) is np.ndarray
    assert result["intensity"][0, 0] == result["intensity"].data[0, 0] == 8
    result["intensity"].real = 3
    result["intensity"].sort()
    assert (result.masked["intensity"] == 3).all()
    result["intensity"].setflags(write=False)
    with pytest.raises(ValueError, match="read-only"):
        result["intensity"][0] = 1


def test_a_parameter_is_a_plain_copy():
    """A run does not see what happens to a result later, and two runs have the same name."""
    result = computed(StdDevUDF())
    mask, plain = result["mean"], np.array(result["mean"])
    ours, theirs = (ud.run_udf(X, ApplyMasksUDF([m])) for m in (mask, plain))
    assert ours["intensity"].name == theirs["intensity"].name
    wanted = theirs.compute(**SYNC)["intensity"]
    mask[:] = 0
    assert_plain(np.asarray(ours.compute(**SYNC)["intensity"]), np.asarray(wanted))


def test_snapshots_do_not_keep_the_data():
    source = da.from_array(DATA, chunks=2).map_blocks(np.copy)
    graph = weakref.ref(source.dask)
    *_, last = ud.run_udf_iter(source, SumUDF(), **SYNC)
    kept = last.buffers[0]
    del source
    gc.collect()
    assert graph() is None
    assert kept["intensity"].any()


@given(st.data())
def test_attributes_are_those_of_the_result(source):
    """Each attribute agrees with the mappings of `Result`, for any region."""
    roi = source.draw(rois((3, 4)))
    udf = source.draw(st.sampled_from([StdDevUDF(), CoMUDF(), SumSigUDF("f4"), SumUDF()]))
    with np.errstate(all="ignore"):
        result = ud.run_udf(X, udf, roi=roi).compute(**SYNC)
    for name, array in result.items():
        shape = array.shape or (1,)
        np.testing.assert_array_equal(array.data, np.reshape(array, shape))
        np.testing.assert_array_equal(array.raw_data, result.raw[name])
        np.testing.assert_array_equal(array.valid_mask, result.valid_mask[name].reshape(shape))
        np.testing.assert_array_equal(
            array.masked_data.mask, np.ma.getmaskarray(result.masked[name]).reshape(shape)
        )
        assert array.raw_masked_data.shape == array.raw_data.shape
        assert array.raw_masked_data.count() == array.valid_mask.sum()
        assert array.extra_shape == result.buffers[name].extra_shape
        assert array.kind == result.buffers[name].kind


def test_a_single_number():
    number = computed(StdDevUDF())["num_frames"]
    assert (int(number), f"{number}", number.shape, number == 12) == (12, "12", (), True)
    assert type(number + 1) is np.int64
    assert number.data.tolist() == number.raw_data.tolist() == [12]
    assert number.valid_mask.tolist() == [True]


def test_lazy_results_have_none_of_it():
    lazy = ud.run_udf(X, SumSigUDF())
    assert isinstance(lazy["intensity"], da.Array)
    assert type(lazy["intensity"].compute(**SYNC)) is np.ndarray
    assert isinstance(lazy.persist(**SYNC)["intensity"], da.Array)
