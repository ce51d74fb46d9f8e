"""CrystallinityUDF is a sum over a ring of numpy.fft.rfft2, whatever the dtype and the chunks."""

import dask
import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from udfdask import ArgumentTypeError, ArgumentValueError
from udfdask.testing import raise_if_dask_computes
from udfdask.udfs import CrystallinityUDF

# many small signal chunks
pytestmark = pytest.mark.filterwarnings("ignore::udfdask.UDFWarning")

NAV, SIG = (4, 6), (12, 15)
RNG = np.random.default_rng(6)
DATA = RNG.integers(0, 90, (*NAV, *SIG))
RING = {"rad_in": 1.5, "rad_out": 5}
DISC = {"real_center": (5.5, 7), "real_rad": 3}


def expected(data, rad_in, rad_out, real_center=None, real_rad=None):
    """The definition, bin by bin in double precision."""
    height, width = data.shape[-2:]
    frames = data.reshape(-1, height, width).astype(np.float64)
    if real_center is not None:
        y, x = np.indices((height, width))
        disc = (y - real_center[0]) ** 2 + (x - real_center[1]) ** 2 <= real_rad**2
        frames = frames * (1 - disc)
    total = np.zeros(len(frames))
    for n, frame in enumerate(frames):
        spectrum = np.fft.rfft2(frame)
        for i, j in np.ndindex(spectrum.shape):
            k = np.hypot(min(i, height - i), j)
            if rad_in < k <= rad_out:
                total[n] += abs(spectrum[i, j])
    return total.reshape(data.shape[:-2])


def run(data, chunks, ring=RING, **options):
    with raise_if_dask_computes():
        lazy = ud.run_udf(da.from_array(data, chunks=chunks), CrystallinityUDF(**ring), **options)
    return lazy["intensity"].compute(scheduler="sync")


CHUNKS = [(4, 6, 12, 15), (2, 3, 12, 15), (1, 6, 5, 15), (3, 4, 12, 4), (2, 2, 5, 4)]


@pytest.mark.parametrize("chunks", CHUNKS, ids=str)
@pytest.mark.parametrize("tile", ["1 MiB", 600])
@pytest.mark.parametrize("disc", [{}, DISC])
def test_cuts(chunks, tile, disc):
    with dask.config.set({"udfdask.tile-bytes": tile}):
        found = run(DATA.astype("u2"), chunks, {**RING, **disc})
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected(DATA, **RING, **disc), rtol=1e-5)


@pytest.mark.parametrize("dtype", ["?", "i1", ">u2", "i4", "u8", "f2", "f4", ">f8", "g"])
def test_dtypes(dtype):
    data = (DATA > 40).astype(dtype) if dtype == "?" else DATA.astype(dtype)
    found = run(data, (2, 3, 5, 15), {**RING, **DISC})
    np.testing.assert_allclose(found, expected(data, **RING, **DISC), rtol=1e-5)


@pytest.mark.parametrize("sig", [(8, 8), (7, 8), (8, 7), (1, 9), (9, 1), (16, 4)])
@pytest.mark.parametrize("ring", [(0, 1), (0, np.inf), (2.5, 3), (1, 4), (3.9, 4)])
def test_sizes_and_rings(sig, ring):
    data = RNG.random((2, 2, *sig))
    ring = dict(zip(("rad_in", "rad_out"), ring, strict=True))
    wanted = expected(data, **ring)
    if wanted.any():
        np.testing.assert_allclose(run(data, (1, 2, *sig), ring), wanted, rtol=1e-5)
    else:
        with pytest.raises(ArgumentValueError, match=r"no frequency of frames of shape"):
            run(data, (1, 2, *sig), ring)


def test_all_bins_but_the_mean():
    found = run(DATA, (2, 3, 12, 15), {"rad_in": 0, "rad_out": np.inf})
    full = np.abs(np.fft.rfft2(DATA))
    np.testing.assert_allclose(found, full.sum(axis=(2, 3)) - full[..., 0, 0], rtol=1e-5)


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"rad_in": -1}, ArgumentValueError),
        ({"rad_in": 5}, ArgumentValueError),
        ({"rad_in": None}, ArgumentTypeError),
        ({"real_rad": 3}, ArgumentValueError),
        ({"real_center": (1, 2)}, ArgumentValueError),
        ({**DISC, "real_rad": -1}, ArgumentValueError),
        ({**DISC, "real_center": "mid"}, ArgumentTypeError),
    ],
)
def test_wrong_parameters(given, error):
    with pytest.raises(error):
        CrystallinityUDF(**{**RING, **given})


def test_wrong_data():
    x = da.from_array(DATA, chunks=(2, 3, 5, 15))
    with raise_if_dask_computes():
        for sig_dims, shape in ((1, r"\(15,\)"), (3, r"\(6, 12, 15\)")):
            with pytest.raises(ArgumentValueError, match=rf"2-D frames, .*the shape {shape}"):
                ud.run_udf(x, CrystallinityUDF(**RING), sig_dims=sig_dims)
        with pytest.raises(ArgumentTypeError, match=r"works on real numbers, .* dtype complex128"):
            ud.run_udf(x * 1j, CrystallinityUDF(**RING))
        with pytest.raises(ArgumentValueError, match=r"no frequency .* lies in the ring 40.0 < k"):
            ud.run_udf(x, CrystallinityUDF(rad_in=40, rad_out=50))
        with pytest.raises(ArgumentValueError, match=r"real_rad=99.0 .* covers frames of shape"):
            ud.run_udf(x, CrystallinityUDF(**{**RING, **DISC, "real_rad": 99}))


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_what_lies_in_the_disc_does_not_count(wrong):
    clean = DATA.astype("f4")
    spoilt = clean.copy()
    spoilt[..., 5, 6] = wrong
    udf = CrystallinityUDF(rad_in=1, rad_out=3, real_center=(5, 6), real_rad=1)
    want, got = (
        ud.run_udf(da.from_array(data, chunks=(2, 3, 12, 15)), udf)["intensity"].compute()
        for data in (clean, spoilt)
    )
    np.testing.assert_array_equal(got, want)
