"""What all ready-made UDFs have in common, whatever they compute."""

from functools import partial

import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from every_dtype import sample
from udf_facts import make_udfs, recording
from udfdask.analyses import PolarMeanUDF, PolarUDF, RadialVarianceUDF
from udfdask.masks import circular, ring
from udfdask.testing import check_udf, raise_if_dask_computes, run_reference
from udfdask.udfs import (
    FEMUDF,
    ApplyMasksUDF,
    AutoUDF,
    CoMUDF,
    CrystallinityUDF,
    LogsumUDF,
    NeighborAverageUDF,
    NeighborSimilarityUDF,
    NoOpUDF,
    PickUDF,
    RadialFourierUDF,
    RadialProfileUDF,
    ScanDriftUDF,
    StdDevUDF,
    SumSigUDF,
    SumUDF,
    VirtualDetectorUDF,
)

SYNC = {"scheduler": "synchronous"}

# for the default data of `check_udf`
RNG = np.random.default_rng(2)
CENTERS = RNG.random((4, 6, 2)) * 6
SHIFTS = RNG.integers(-3, 4, (4, 6, 2))
MASKS = RNG.random((2, 6, 8)) < 0.4
DISK = partial(circular, 4, 3, 8, 6, 2)
ROUND = {"r": 3, "n_angles": 5}
LAWFUL = [
    SumUDF(),
    SumUDF("f4"),
    SumSigUDF(),
    SumSigUDF("f8"),
    LogsumUDF(),
    StdDevUDF(),
    StdDevUDF(dtype="float32"),
    CoMUDF(),
    CoMUDF(r=3, ri=1, cy=2.3, regression=1),
    FEMUDF((3, 4), 1, 3),
    CrystallinityUDF(1, 3),
    CrystallinityUDF(1, 3, (2, 3), 1.5),
    NeighborAverageUDF(),
    NeighborAverageUDF("rectangular", shape=5),
    ScanDriftUDF(),
    NeighborSimilarityUDF(),
    NeighborSimilarityUDF("rectangular", shape=5),
    PolarUDF(cy=3, cx=4, n_bins=2, **ROUND),
    PolarUDF(centers=CENTERS, **ROUND),
    PolarMeanUDF(cy=3, cx=4, n_bins=2, **ROUND),
    PolarMeanUDF(centers=CENTERS, **ROUND),
    RadialVarianceUDF(cy=3, cx=4, r=3),
    RadialVarianceUDF(centers=CENTERS, r=3),
    RadialProfileUDF(cy=2.5, r=4, n_bins=3),
    RadialProfileUDF(centers=CENTERS, r=4, n_bins=3),
    RadialFourierUDF(r=3, n_bins=2, max_order=3),
    VirtualDetectorUDF("disk", r=3),
    VirtualDetectorUDF("ring", ri=2, ro=5),
    VirtualDetectorUDF(MASKS[0]),
    ApplyMasksUDF({"a": MASKS[0], "b": MASKS[1]}),
    ApplyMasksUDF(partial(np.linspace, np.zeros((6, 8)), np.ones((6, 8)), 3), use_sparse=False),
    ApplyMasksUDF([DISK, partial(ring, 4, 3, 8, 6, 3, 1)], use_sparse=True),
    ApplyMasksUDF([DISK], shifts=SHIFTS),
    ApplyMasksUDF([DISK], shifts=(1, -2)),
    PickUDF(),
    NoOpUDF(),
    NoOpUDF("float64"),
    AutoUDF(np.max),
    AutoUDF(partial(np.sum, axis=0)),
    AutoUDF(np.nonzero, ragged=True),
    AutoUDF(np.sum, monitor=True),
    AutoUDF(lambda frame: frame.sum(axis=0), monitor=True),
]


@pytest.mark.full
@pytest.mark.parametrize("udf", LAWFUL, ids=lambda udf: type(udf).__name__)
def test_the_laws(udf):
    assert not check_udf(udf).notes


@pytest.mark.full
@pytest.mark.parametrize("udf", [SumUDF(), SumSigUDF(), StdDevUDF(), FEMUDF((3, 4), 1, 3)])
def test_the_laws_with_complex_data(udf):
    check_udf(udf, sample("c8", (4, 6, 5, 7)))


def test_spectra():
    data = RNG.integers(0, 90, (11, 20)).astype("uint16")
    udfs = [SumUDF(), SumSigUDF(), StdDevUDF(), LogsumUDF(), ApplyMasksUDF(data[:3] % 2)]
    x = da.from_array(data, chunks=(4, 20))
    results = ud.compute(*ud.run_udf(x, udfs, sig_dims=1), **SYNC)
    expected = run_reference(data, udfs, sig_dims=1)
    for udf, result, wanted in zip(udfs, results, expected, strict=True):
        for name, values in wanted.items():
            np.testing.assert_allclose(result[name], values, rtol=1e-6, err_msg=f"{udf} {name}")


@pytest.fixture
def udfs(tmp_path):
    """All but the one that writes a file, which can be done once."""
    every = make_udfs(tmp_path)
    del every["RecordUDF"]
    return every


def lazy(udfs):
    """A run of all of them, of which nothing has been computed."""
    with raise_if_dask_computes():
        return ud.run_udf(recording(), udfs)


def test_every_scheduler_gives_the_same_bits(udfs, options):
    (one,), (other,) = ud.compute(lazy(udfs), **SYNC), ud.compute(lazy(udfs), **options)
    for udf, result in one.items():
        for name, values in result.items():
            np.testing.assert_array_equal(other[udf][name], values, err_msg=f"{udf} {name}")


def test_alone_and_with_others(udfs):
    (together,) = ud.compute(lazy(udfs), **SYNC)
    for udf, alone in udfs.items():
        for name, values in ud.run_udf(recording(), alone).compute(**SYNC).items():
            got = together[udf][name]
            np.testing.assert_allclose(got, values, rtol=1e-6, err_msg=f"{udf} {name}")


def test_the_last_snapshot_is_the_result(udfs):
    (done,) = ud.compute(lazy(udfs), **SYNC)
    *_, last = ud.run_udf_iter(recording(), udfs, **SYNC)
    for udf, buffers in zip(udfs, last.buffers, strict=True):
        for name, values in buffers.items():
            wanted = done[udf][name]
            np.testing.assert_allclose(values, wanted, rtol=1e-6, err_msg=f"{udf} {name}")
