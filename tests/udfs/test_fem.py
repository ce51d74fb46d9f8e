"""FEMUDF is numpy.std over a ring, whatever the dtype and however the data are cut."""

import dask
import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from udfdask import ArgumentTypeError, ArgumentValueError
from udfdask.testing import raise_if_dask_computes
from udfdask.udfs import FEMUDF

# many small signal chunks
pytestmark = pytest.mark.filterwarnings("ignore::udfdask.UDFWarning")

NAV, SIG = (4, 6), (12, 15)
RNG = np.random.default_rng(5)
DATA = RNG.integers(0, 90, (*NAV, *SIG))
RING = {"center": (5.5, 7), "rad_in": 2, "rad_out": 4.5}

CHUNKS = [
    (4, 6, 12, 15),
    (2, 3, 12, 15),
    (1, 6, 5, 15),
    (3, 4, 12, 4),
    (2, 2, 5, 4),
    (1, 1, 12, (1, 1, 6, 6, 1)),
]


def expected(data, center, rad_in, rad_out):
    """The definition, frame by frame in double precision."""
    y, x = np.indices(data.shape[-2:])
    d = np.hypot(y - center[0], x - center[1])
    inside = (d > rad_in) & (d <= rad_out)
    wide = np.complex128 if data.dtype.kind == "c" else np.float64
    values = [np.std(frame[inside].astype(wide)) for frame in data.reshape(-1, *data.shape[-2:])]
    return np.reshape(values, data.shape[:-2])


def run(data, chunks, ring=RING, **options):
    with raise_if_dask_computes():
        lazy = ud.run_udf(da.from_array(data, chunks=chunks), FEMUDF(**ring), **options)
    return lazy["intensity"].compute(scheduler="sync")


@pytest.mark.full
@pytest.mark.parametrize("chunks", CHUNKS, ids=str)
@pytest.mark.parametrize("tile", ["1 MiB", 600, 64])
def test_cuts(chunks, tile):
    with dask.config.set({"udfdask.tile-bytes": tile}):
        found = run(DATA.astype("u2"), chunks)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected(DATA, **RING), rtol=1e-6)


@pytest.mark.full
@pytest.mark.parametrize(
    "dtype", ["?", "i1", "u1", "i2", ">u2", "i4", "u8", "f2", "f4", ">f8", "g", "c8", ">c16", "G"]
)
@pytest.mark.parametrize("chunks", [CHUNKS[0], CHUNKS[4]], ids=str)
def test_dtypes(dtype, chunks):
    data = (DATA > 40).astype(dtype) if dtype == "?" else DATA.astype(dtype)
    if data.dtype.kind == "c":
        data += data[::-1] * 1j
    found = run(data, chunks)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected(data, **RING), rtol=1e-6)


@pytest.mark.parametrize(
    "ring",
    [
        {"center": (0, 0), "rad_in": 0, "rad_out": 3},
        {"center": (5, 5), "rad_in": 0, "rad_out": np.inf},
        {"center": (-3, 20), "rad_in": 4, "rad_out": 9},
        {"center": np.array([5, 5]), "rad_in": 0.5, "rad_out": 1},  # four pixels
        {"center": (5, 5), "rad_in": 2.9, "rad_out": np.float32(3)},
    ],
)
def test_rings(ring):
    for chunks in (CHUNKS[0], CHUNKS[4]):
        np.testing.assert_allclose(run(DATA, chunks, ring), expected(DATA, **ring), rtol=1e-6)


def test_a_large_offset_and_a_hot_pixel_cost_no_digits():
    data = RNG.normal(0, 1, (2, 2, *SIG))
    offset = data + 1e9
    np.testing.assert_allclose(
        run(offset, (1, 2, 5, 15)), expected(offset, **RING), rtol=1e-6, atol=0
    )
    data[..., 5, 9] = 1e7
    np.testing.assert_allclose(run(data, (1, 2, 5, 15)), expected(data, **RING), rtol=1e-6)
    assert (run(np.full((2, 2, *SIG), 0.1), (1, 2, 5, 4)) < 1e-15).all()


def test_one_pixel_has_no_spread():
    ring = {"center": (5, 5), "rad_in": 0.5, "rad_out": 1}
    assert (run(DATA[..., 4:6, 5:6], (2, 2, 1, 1), {**ring, "center": (0, 0)}) == 0).all()


def test_not_a_number_shows_in_its_frame_alone():
    data = DATA.astype("f4")
    data[1, 2, 5, 10] = np.nan
    data[2, 2, 0, 0] = np.nan  # outside of the ring
    found = run(data, (2, 3, 5, 15))
    assert np.argwhere(np.isnan(found)).tolist() == [[1, 2]]


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"rad_in": -1}, ArgumentValueError),
        ({"rad_in": np.nan}, ArgumentValueError),
        ({"rad_in": np.inf}, ArgumentValueError),
        ({"rad_in": 4.5}, ArgumentValueError),
        ({"rad_in": "2 mrad", "rad_out": "1 mrad"}, ArgumentValueError),
        ({"rad_out": "wide"}, ArgumentTypeError),
        ({"center": 5}, ArgumentTypeError),
        ({"center": (1, 2, 3)}, ArgumentTypeError),
        ({"center": (1, None)}, ArgumentTypeError),
        ({"center": (np.nan, 1)}, ArgumentValueError),
    ],
)
def test_wrong_rings(changed, error):
    with pytest.raises(error):
        FEMUDF(**{**RING, **changed})


def test_wrong_data():
    x = da.from_array(DATA, chunks=(2, 3, 5, 15))
    with raise_if_dask_computes():
        for sig_dims, shape in ((1, r"\(15,\)"), (3, r"\(6, 12, 15\)")):
            with pytest.raises(ArgumentValueError, match=rf"2-D frames, .*the shape {shape}"):
                ud.run_udf(x, FEMUDF(**RING), sig_dims=sig_dims)
        with pytest.raises(ArgumentTypeError, match=r"FEMUDF works on numbers, .* timedelta64"):
            ud.run_udf(x.astype("m8[s]"), FEMUDF(**RING))
        far = FEMUDF(center=(60, 5), rad_in=2, rad_out=4)
        with pytest.raises(ArgumentValueError, match=r"no pixel .*\(12, 15\) lies in the ring 2.0"):
            ud.run_udf(x, far)


def test_lazy_numbers_are_not_computed():
    for center, rad_in in ((da.ones(2), 1), ((3, 4), da.ones(()))):
        with raise_if_dask_computes(), pytest.raises(ArgumentTypeError, match="not a lazy Array"):
            FEMUDF(center=center, rad_in=rad_in, rad_out=3)
