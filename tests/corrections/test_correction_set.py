"""Correction sets: what may be given, what is refused and how, and how they travel."""

import pickle

import dask
import dask.array as da
import numpy as np
import pytest
import scipy.sparse
import sparse
from dask.base import tokenize

import udfdask as ud
from udfdask import ArgumentTypeError, ArgumentValueError
from udfdask.base.names.naming import tokenize_value
from udfdask.corrections import CorrectionSet
from udfdask.corrections.correction_set import excluded_coordinates
from udfdask.corrections.planes import straddles
from udfdask.testing import raise_if_dask_computes
from udfdask.udfs import PickUDF, SumUDF

SIG = (5, 6)
RNG = np.random.default_rng(1)
DARK = RNG.random(SIG)
GAIN = 1 + RNG.random(SIG)
MASK = np.zeros(SIG, dtype=bool)
MASK[1, 2] = MASK[3, 5] = MASK[3, 4] = True
X = da.from_array(RNG.integers(0, 90, (4, 3, *SIG)).astype("uint16"), chunks=(2, 3, 3, 6))


def frames(corrections, x=X):
    run = ud.run_udf(x, PickUDF(), corrections=corrections)
    return run["intensity"].compute(scheduler="sync").reshape(x.shape)


EXCLUDED = {
    "mask": MASK,
    "nonzero": np.nonzero(MASK),
    "coordinates": np.array(np.nonzero(MASK)),
    "unsigned": np.array(np.nonzero(MASK), dtype="uint8"),
    "lists": [list(map(int, axis)) for axis in np.nonzero(MASK)],
    "twice": np.concatenate([np.nonzero(MASK)] * 2, axis=1)[:, ::-1],
    "coo": sparse.COO(MASK),
    "entries": sparse.COO(coords=np.nonzero(MASK), data=1, shape=SIG),
    "gcxs": sparse.GCXS.from_coo(sparse.COO(MASK)),
    "scipy": scipy.sparse.csr_array(MASK),
    "scipy matrix": scipy.sparse.coo_matrix(MASK.astype(int)),
}


@pytest.mark.parametrize("given", EXCLUDED.values(), ids=EXCLUDED)
def test_ways_to_give_excluded_pixels(given):
    reference = CorrectionSet(dark=DARK, excluded_pixels=MASK)
    np.testing.assert_array_equal(
        frames(CorrectionSet(dark=DARK, excluded_pixels=given)), frames(reference)
    )


@pytest.mark.parametrize(
    ("given", "sig", "places"),
    [
        ((1, 2), (4, 4), [[1], [2]]),
        ((3,), (4,), [[3]]),
        ([3, 1], (4,), [[1, 3]]),
        ((0, 1, 2), (3, 3, 3), [[0], [1], [2]]),
        ([], (3, 3), [[], []]),
        (np.nonzero(np.zeros((3, 3))), (3, 3), [[], []]),
        (np.zeros((3, 3), dtype=bool), (3, 3), [[], []]),
        (np.zeros((2, 0), dtype=bool), (3, 3), [[], []]),
        (sparse.COO(np.zeros((2, 0))), (3, 3), [[], []]),
    ],
)
def test_coordinates(given, sig, places):
    found = excluded_coordinates(CorrectionSet(excluded_pixels=given).excluded_pixels, sig)
    assert found.dtype == np.int64
    np.testing.assert_array_equal(found, places)


PLANES = {
    "list": DARK.tolist(),
    "float32": DARK.astype("f4"),
    "big-endian": DARK.astype(">f8"),
    "fortran": np.asfortranarray(DARK),
    "dask": da.from_array(DARK, chunks=2),
    "coo": sparse.COO(DARK),
    "scipy": scipy.sparse.csr_array(DARK),
    "dask of coo": da.from_array(DARK, chunks=(5, 6)).map_blocks(sparse.COO),
}


@pytest.mark.parametrize("given", PLANES.values(), ids=PLANES)
def test_ways_to_give_dark_and_gain(given):
    expected = frames(CorrectionSet(dark=DARK, gain=DARK))
    np.testing.assert_allclose(frames(CorrectionSet(dark=given, gain=given)), expected, rtol=1e-5)


def test_labelled_frames():
    xr = pytest.importorskip("xarray", reason="xarray is an extra")
    for plane in (DARK, da.from_array(DARK, chunks=2)):
        with raise_if_dask_computes():
            corrections = CorrectionSet(dark=xr.DataArray(plane, dims=("y", "x")))
        np.testing.assert_array_equal(frames(corrections), frames(CorrectionSet(dark=DARK)))


NAN = DARK.copy()
NAN[1, 2] = NAN[2, 3] = np.nan
INF = GAIN.copy()
INF[0, 0] = np.inf
CORNER = np.array([[0, 0, 1, 1], [0, 1, 0, 1]])

WRONG_VALUES = {
    "dark shape": {"dark": DARK[1:]},
    "gain shape": {"gain": 2.0},
    "lazy shape": {"gain": da.ones((6, 5))},
    "mask shape": {"excluded_pixels": MASK.T},
    "each other": {"dark": DARK, "excluded_pixels": MASK.T},
    "dark and gain": {"dark": DARK, "gain": GAIN.T},
    "rows of places": {"excluded_pixels": CORNER.T},
    "int mask": {"excluded_pixels": MASK.astype(int)},
    "outside": {"excluded_pixels": (5, 0)},
    "negative": {"excluded_pixels": [[0, 1], [0, -1]]},
    "unknown shape": {"dark": da.ones(9)[da.ones(9) > 0]},
    "nan": {"dark": NAN},
    "one nan": {"gain": NAN, "excluded_pixels": MASK},
    "inf": {"gain": INF},
    "empty": {"excluded_pixels": CORNER, "allow_empty": False},
    "all": {"excluded_pixels": np.ones(SIG, dtype=bool), "allow_empty": False},
}


@pytest.mark.parametrize("given", WRONG_VALUES.values(), ids=WRONG_VALUES)
@pytest.mark.parametrize("door", [ud.run_udf, ud.explain])
def test_wrong_values(door, given):
    with raise_if_dask_computes(), pytest.raises(ArgumentValueError):
        door(X, SumUDF(), corrections=CorrectionSet(**given))


WRONG_TYPES = {
    "text": {"dark": "dark.npy"},
    "nothing": {"gain": [None]},
    "ragged": {"gain": [[1, 2], [3]]},
    "dates": {"dark": np.zeros(SIG, "M8[s]")},
    "lazy dates": {"dark": da.zeros(SIG, dtype="M8[s]")},
    "delayed": {"dark": dask.delayed(DARK)},
    "masked": {"gain": np.ma.masked_array(GAIN, MASK)},
    "complex": {"gain": GAIN * 1j},
    "float mask": {"excluded_pixels": MASK * 1.0},
    "text mask": {"excluded_pixels": "beamstop"},
    "ragged places": {"excluded_pixels": ([1, 2], [3])},
    "lazy mask": {"excluded_pixels": da.from_array(MASK)},
    "allow": {"allow_empty": None},
}


@pytest.mark.parametrize("given", WRONG_TYPES.values(), ids=WRONG_TYPES)
def test_wrong_types(given):
    with raise_if_dask_computes(), pytest.raises(ArgumentTypeError):
        ud.run_udf(X, SumUDF(), corrections=CorrectionSet(**given))


@pytest.mark.parametrize("corrections", [DARK, "dark", {"dark": DARK}, CorrectionSet])
def test_no_correction_set(corrections):
    with pytest.raises(ArgumentTypeError, match=r"must be a udfdask.corrections.CorrectionSet"):
        ud.run_udf(X, SumUDF(), corrections=corrections)


def test_data_that_are_no_numbers():
    class Preferring(PickUDF):
        def get_preferred_input_dtype(self):
            return "m8[s]"

    x = X.astype("m8[s]")
    with pytest.raises(ArgumentTypeError, match=r"corrections need data that are numbers"):
        ud.run_udf(x, PickUDF(), corrections=CorrectionSet(dark=DARK))
    with pytest.raises(ArgumentTypeError, match=r"does not combine with the data's dtype uint16"):
        ud.run_udf(X, Preferring(), corrections=CorrectionSet(dark=DARK))


def test_lazy_values_are_checked_where_they_are_computed():
    for given in (NAN, da.from_array(NAN, chunks=2)):
        fine = CorrectionSet(dark=given, excluded_pixels=[[1, 2], [2, 3]])
        assert np.isfinite(frames(fine)).all()
    corrections = CorrectionSet(dark=da.from_array(NAN, chunks=2))
    result = ud.run_udf(X, SumUDF(), corrections=corrections)
    with pytest.raises(ArgumentValueError, match=r"dark is nan at pixel \(1, 2\)"):
        result.compute(scheduler="sync")
    short = da.map_blocks(lambda: np.ones((4, 6)), chunks=((5,), (6,)), dtype=float, meta=DARK[:0])
    result = ud.run_udf(X, SumUDF(), corrections=CorrectionSet(gain=short))
    with pytest.raises(ArgumentValueError, match=r"gain has shape \(4, 6\), but frames have shape"):
        result.compute(scheduler="sync")


def test_frozen_and_copied():
    dark, mask = DARK.copy(), MASK.copy()
    corrections = CorrectionSet(dark=dark, excluded_pixels=mask)
    dark[:], mask[:] = 7, True
    np.testing.assert_array_equal(corrections.dark, DARK)
    np.testing.assert_array_equal(corrections.excluded_pixels, MASK)
    for made in (corrections, pickle.loads(pickle.dumps(corrections))):
        np.testing.assert_array_equal(made.dark, DARK)
        with pytest.raises(AttributeError):
            made.dark = None
        for array in (made.dark, made.excluded_pixels):
            with pytest.raises(ValueError, match=r"read-only"):
                array[...] = 0


def test_repr():
    assert repr(CorrectionSet()) == "CorrectionSet()"
    lazy = CorrectionSet(dark=da.from_array(DARK), excluded_pixels=MASK, allow_empty=False)
    text = "CorrectionSet(dark=(5, 6) float64 lazy, excluded_pixels=3, allow_empty=False)"
    assert repr(lazy) == text
    assert (
        repr(CorrectionSet(excluded_pixels=np.nonzero(MASK))) == "CorrectionSet(excluded_pixels=3)"
    )


def changed(array, place=(2, 2)):
    other = array.copy()
    other[place] = ~other[place] if other.dtype == bool else other[place] + 1e-9
    return other


BASE = {"dark": DARK, "gain": GAIN, "excluded_pixels": MASK, "allow_empty": True}
OTHER = {
    "dark": changed(DARK),
    "gain": changed(GAIN),
    "excluded_pixels": changed(MASK),
    "allow_empty": False,
}


@pytest.mark.parametrize("field", BASE)
@pytest.mark.parametrize("lazy", [False, True])
def test_every_pixel_reaches_the_names(field, lazy):
    def of(arguments):
        given = dict(arguments)
        if lazy and field in ("dark", "gain"):
            given[field] = da.from_array(given[field], chunks=3)
        return CorrectionSet(**given)

    def name(corrections):
        return ud.run_udf(X, SumUDF(), corrections=corrections)["intensity"].name

    same, other = of(BASE), of({**BASE, field: OTHER[field]})
    for token in (tokenize_value, tokenize, name):
        assert token(same) == token(of(BASE))
        assert token(same) != token(other)
    for corrections in (same, other):
        assert name(corrections) != name(CorrectionSet())


def test_no_corrections_at_all():
    plain = ud.run_udf(X, SumUDF())["intensity"]
    empty = ud.run_udf(X, SumUDF(), corrections=CorrectionSet())["intensity"]
    assert empty.name == plain.name
    assert empty.dtype == plain.dtype == np.dtype("int64")


@pytest.mark.parametrize(
    ("places", "edges", "expected"),
    [
        ([[1], [1]], [[0], [0]], False),
        ([[1], [1]], [[0, 2], [0]], True),
        ([[1], [1]], [[0, 3], [0, 3]], False),
        ([[1], [1]], [[0, 3], [0, 1]], True),
        # the neighbors in the other part are no good either
        ([[1, 1, 1, 2, 2, 2], [0, 1, 2, 0, 1, 2]], [[0, 2], [0]], False),
        ([[], []], [[0, 1, 2], [0, 1, 2]], False),
    ],
)
def test_straddles(places, edges, expected):
    assert straddles(np.array(places, dtype=int), (4, 3), edges) is expected
