"""Every public name on the plain install: the core dependencies, and no package that is optional.

`.ci/run` makes such an environment and sets `UDFDASK_PLAIN_INSTALL`. An optional package that is
installed there is an error. Elsewhere only the built-in UDFs run, which keeps their table complete.
"""

import doctest
import itertools
import os
import re
import tomllib
from importlib import metadata
from pathlib import Path

import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from udfdask import corrections, io, masks, plotting, testing, udfs

PLAIN = bool(os.environ.get("UDFDASK_PLAIN_INSTALL"))
TOOLS = {"pytest"}  # what runs this file
PROJECT = Path(__file__).parents[2] / "pyproject.toml"

NAV, SIG = (4, 6), (9, 8)
DATA = np.random.default_rng(0).integers(0, 4000, (*NAV, *SIG), dtype="uint16")
WIDE = DATA.astype("float64")
Y, X = np.mgrid[:9, :8]
RING = (np.hypot(Y - 4, X - 4) > 1) & (np.hypot(Y - 4, X - 4) <= 3)
COM = np.stack([(WIDE * place).sum((2, 3)) / WIDE.sum((2, 3)) for place in (Y, X)], axis=-1)
MASKS = np.stack([RING, Y < 4]).astype("float32")


def optional_packages():
    """Names of the distributions that only extras bring."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    extras = itertools.chain(*project["optional-dependencies"].values())
    core, optional = (
        {re.match(r"[\w.-]+", r).group() for r in some}
        for some in (project["dependencies"], extras)
    )
    # dask[distributed] is an extra of dask
    return (optional | {"distributed"}) - core - TOOLS - {"udfdask"}


def array(chunks=(2, 3, *SIG)):
    return da.from_array(DATA, chunks=chunks)


def result_of(udf, buffer="intensity", **options):
    return ud.run_udf(array(), udf, **options).compute()[buffer]


def radial_weights():
    return masks.radial_bins(4, 4, *SIG[::-1], radius=3, n_bins=3, use_sparse=False)


def correlation_shifts():
    """Centers of a disk that is expected two pixels higher and one to the right."""
    frame = masks.circular(13, 10, 24, 20, radius=3, antialiased=True) * 100
    x = da.from_array(np.stack([frame] * 4).astype("uint16"), chunks=(2, 20, 24))
    udf = udfs.CorrelationUDF([(8, 14)], masks.DiskTemplate(radius=3, radius_outer=5), steps=4)
    return ud.run_udf(x, udf).compute()["centers"][:, 0]


def spectrum():
    k = np.hypot(np.fft.fftfreq(9, 1 / 9)[:, None], np.fft.rfftfreq(8, 1 / 8))
    return np.abs(np.fft.rfft2(WIDE))[..., (k > 1) & (k <= 3)].sum(axis=-1)


def harmonics():
    angle = np.arctan2(Y - 4, X - 4)
    waves = [np.exp(1j * n * angle) * w for w in radial_weights() for n in range(3)]
    return np.einsum("abyx,kyx->abk", WIDE, np.array(waves))


def cosines():
    norm = np.sqrt((WIDE**2).sum(axis=(2, 3)))
    return np.einsum("abyx,abyx->ab", WIDE, np.roll(WIDE, -1, axis=1)) / (
        norm * np.roll(norm, -1, axis=1)
    )


def drift_of_a_disk():
    frames = [masks.circular(6 + 2 * k, 10, 24, 20, radius=3) for k in range(4)]
    x = da.from_array(np.stack(frames).astype("uint16"), chunks=(2, 20, 24))
    return ud.run_udf(x, udfs.ScanDriftUDF()).compute()["shifts"][1:, 0].round(3)  # by a fit


def written(tmp_path):
    ud.run_udf(array(), udfs.RecordUDF(tmp_path / "a.npy")).compute()
    return np.load(tmp_path / "a.npy")


def guess():
    y, x = np.mgrid[-8:9, -8:9]
    pull = np.exp(-(y**2 + x**2) / 8)
    seen = udfs.apply_correction(-y * pull, -x * pull, 25, flip_y=True, forward=False)
    return udfs.guess_corrections(*seen)[:2]


UDFS = {
    "ApplyMasksUDF": lambda _: (
        result_of(udfs.ApplyMasksUDF(mask_factories=lambda: MASKS)),
        np.einsum("abyx,kyx->abk", WIDE, MASKS),
    ),
    "AutoUDF": lambda _: (result_of(udfs.AutoUDF(f=np.max), "result"), DATA.max(axis=(2, 3))),
    "CoMUDF": lambda _: (result_of(udfs.CoMUDF(), "raw_com"), COM),
    "CorrelationUDF": lambda _: (correlation_shifts(), [(10, 13)] * 4),
    "CrystallinityUDF": lambda _: (result_of(udfs.CrystallinityUDF(1, 3)), spectrum()),
    "FEMUDF": lambda _: (result_of(udfs.FEMUDF((4, 4), 1, 3)), WIDE[..., RING].std(axis=-1)),
    "LogsumUDF": lambda _: (
        result_of(udfs.LogsumUDF(), "logsum"),
        np.log(WIDE - WIDE.min(axis=(2, 3), keepdims=True) + 1).sum(axis=(0, 1)),
    ),
    "NeighborAverageUDF": lambda _: (
        result_of(udfs.NeighborAverageUDF([[0.5, 0, 0.5]], boundary="periodic")),
        (np.roll(WIDE, 1, axis=1) + np.roll(WIDE, -1, axis=1)) / 2,
    ),
    "NeighborSimilarityUDF": lambda _: (
        result_of(
            udfs.NeighborSimilarityUDF([[0, 1, 1]], zero_mean=False, boundary="periodic"), "mean"
        ),
        cosines(),
    ),
    "NoOpUDF": lambda _: (len(ud.run_udf(array(), udfs.NoOpUDF()).compute()), 0),
    "PickUDF": lambda _: (result_of(udfs.PickUDF(), roi=(1, 2)), DATA[1:2, 2]),
    "RadialFourierUDF": lambda _: (
        result_of(udfs.RadialFourierUDF(4, 4, 3, n_bins=3, max_order=2), "coefficients"),
        harmonics(),
    ),
    "RadialProfileUDF": lambda _: (
        result_of(udfs.RadialProfileUDF(4, 4, 3)),
        np.einsum("abyx,kyx->abk", WIDE, radial_weights()) / radial_weights().sum(axis=(1, 2)),
    ),
    "RecordUDF": lambda tmp_path: (written(tmp_path), DATA),
    "ScanDriftUDF": lambda _: (drift_of_a_disk(), [[0, 2], [0, 2], [0, 2]]),
    "StdDevUDF": lambda _: (result_of(udfs.StdDevUDF(), "std"), WIDE.std(axis=(0, 1))),
    "SumSigUDF": lambda _: (result_of(udfs.SumSigUDF()), DATA.sum(axis=(2, 3))),
    "SumUDF": lambda _: (result_of(udfs.SumUDF()), DATA.sum(axis=(0, 1))),
    "VirtualDetectorUDF": lambda _: (
        result_of(udfs.VirtualDetectorUDF("ring", cy=4, cx=4, ri=1, ro=3)),
        DATA[..., RING].sum(axis=-1),
    ),
    "GuessResult": lambda _: (udfs.GuessResult(25, True, 4.0, 4.0).cy, 4),
    "apply_correction": lambda _: (udfs.apply_correction(0.0, 1.0, 90, flip_y=False), (1, 0)),
    "find_center": lambda _: (
        udfs.find_center(np.abs(Y - 4) + np.abs(X - 4) < 3, method="com"),
        (4, 4),
    ),
    "guess_corrections": lambda _: (guess(), (25, True)),
    "integrate_drift": lambda _: (udfs.integrate_drift(np.ones((3, 1, 1)))[:, 0], (0, 1, 2)),
    "to_beam_shift": lambda _: (udfs.to_beam_shift([1.0, 2.0]), (-2, -1)),
}
"""What each name of `udfdask.udfs` gives, and what NumPy does; called with a folder."""


@pytest.mark.skipif(not PLAIN, reason="this environment is meant to have optional packages")
def test_no_optional_package_is_installed():
    installed = {found.name.lower() for found in metadata.distributions()}
    assert not optional_packages() & installed


def test_the_packages_that_are_optional():
    assert {"distributed", "xarray", "hyperspy", "sparse", "h5py", "matplotlib"} <= (
        optional_packages()
    )
    assert not {"numpy", "numba", "scipy", "dask"} & optional_packages()


@pytest.mark.parametrize("name", udfs.__all__)
def test_udfs(name, tmp_path):
    got, wanted = UDFS[name](tmp_path)
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.skipif(not PLAIN, reason="the default run has these examples as doctests")
@pytest.mark.parametrize(
    ("module", "name"),
    [
        (module, name)
        for module in (ud, corrections, io, masks, plotting, testing, udfs)
        for name in module.__all__
        if callable(getattr(module, name))
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_examples_run_or_name_the_extra_they_need(module, name):
    finder = doctest.DocTestFinder(recurse=False)
    (example,) = finder.find(getattr(module, name), name)
    runner = doctest.DebugRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    try:
        runner.run(example)
    except doctest.UnexpectedException as found:
        kind, error, _ = found.exc_info
        assert issubclass(kind, ImportError)
        assert re.search(r'pip install "udfdask\[\w+\]"', str(error))
