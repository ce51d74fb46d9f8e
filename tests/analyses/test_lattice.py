"""Lattices of disks against simulated crystals, and against the propagation of errors."""

import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from lattices import LATTICE, disks, orders, rotated, strained
from making import SYNC
from udfdask import ArgumentTypeError, ArgumentValueError
from udfdask.analyses import FitLatticeUDF, fit_lattice, guess_lattice
from udfdask.testing import check_udf, raise_if_dask_computes

GUESS = np.concatenate([[(60, 64)], LATTICE])
FLAWS = {"none": {}, "missing": {"missing": 0.3}, "both": {"missing": 0.3, "false": 0.2}}


def vectors_of(fit):
    return np.stack([fit["a"], fit["b"]], axis=-2)


@pytest.mark.parametrize("flaws", FLAWS.values(), ids=FLAWS)
@pytest.mark.parametrize("frames", [1, 40])
def test_guess(flaws, frames):
    found, _ = disks(strained(frames), noise=0.05, seed=4, **flaws)
    guess = guess_lattice(found)
    np.testing.assert_allclose(guess[1:], LATTICE, atol=0.6 if frames == 1 else 0.15)
    # any point of the lattice that is near to the middle
    h = np.linalg.solve(guess[1:].T, guess[0] - (60, 64))
    np.testing.assert_allclose(h, np.rint(h), atol=0.15)


def test_guess_takes_the_origin_at_the_strongest_disk():
    found = (60, 64) + orders() @ LATTICE
    weights = np.where(orders().any(axis=1), 1.0, 50.0)
    for shift in [(0, 0), (16, 3)]:
        frames = np.concatenate([found + shift, weights[:, None]], axis=1)
        np.testing.assert_allclose(guess_lattice(frames)[0], np.add((60, 64), shift), atol=1e-9)


def test_guess_of_hexagonal_and_large_lattices():
    for scale in (8, 20, 300):
        hexagonal = scale * np.array([(np.sqrt(0.75), 0.5), (0, 1.0)])
        guess = guess_lattice(orders() @ hexagonal)
        lengths = np.linalg.norm(guess[1:], axis=1)
        np.testing.assert_allclose(lengths, scale)
        assert np.linalg.det(guess[1:]) > 0
        assert guess[1, 0] > 0


@pytest.mark.parametrize("noise", [0.02, 0.1])
@pytest.mark.parametrize("flaws", FLAWS.values(), ids=FLAWS)
def test_errors_are_those_of_the_disks(noise, flaws):
    true = strained(400)
    found, origins = disks(true, noise=noise, **flaws)
    fit = fit_lattice(found.reshape(20, 20, *found.shape[1:])).compute(**SYNC)
    used, index = fit.valid_mask["indices"].all(axis=-1).reshape(400, -1), fit["indices"]
    design = np.concatenate([np.ones((*used.shape, 1)), index.reshape(400, -1, 2)], axis=2)
    design = design * used[..., None]
    covariance = noise**2 * np.linalg.inv(np.swapaxes(design, 1, 2) @ design)
    expected = np.sqrt(covariance.diagonal(axis1=1, axis2=2).mean(axis=0))
    errors = vectors_of(fit).reshape(400, 2, 2) - true
    np.testing.assert_allclose(np.sqrt((errors**2).mean(axis=(0, 2))), expected[1:], rtol=0.12)
    error = fit["origin"].reshape(400, 2) - origins
    np.testing.assert_allclose(np.sqrt((error**2).mean()), expected[0], rtol=0.12)
    degrees = (1 - 3 / used.sum(axis=1)).mean()
    residual = np.sqrt((fit["residual"] ** 2).mean())
    np.testing.assert_allclose(residual, noise * np.sqrt(2 * degrees), rtol=0.05)


def test_no_grain_is_lost():
    # three grains: one of them is small and turned by 20 degrees, and one frame shows both
    true = np.stack([*[LATTICE] * 30, *[rotated(LATTICE, 0.1)] * 10, *[rotated(LATTICE, 0.35)] * 5])
    found, _ = disks(true, noise=0.05, missing=0.2, false=0.1)
    found[-1, ::3] = disks(LATTICE[None], seed=9, false=0.1)[0][0, ::3]
    fit = fit_lattice(found).compute(**SYNC)
    np.testing.assert_allclose(vectors_of(fit)[:-1], true[:-1], atol=0.06)
    nearest = min(np.abs(vectors_of(fit)[-1] - one).max() for one in (true[-1], LATTICE))
    assert nearest < 0.1


def test_weights():
    found, _ = disks(strained(6), noise=0.1, seed=3)
    weights = np.random.default_rng(0).uniform(0.1, 1, found.shape[:2])
    weights[:, 5] = 0
    fit = fit_lattice(found, guess=GUESS, weights=weights).compute(**SYNC)
    assert not fit.valid_mask["indices"][:, 5].any()
    k = 2
    used = fit.valid_mask["indices"][k, :, 0]
    design = np.concatenate([np.ones((used.sum(), 1)), fit["indices"][k, used]], axis=1)
    root = np.sqrt(weights[k, used])[:, None]
    expected = np.linalg.lstsq(design * root, found[k, used] * root)[0]
    lattice = np.stack([fit[name][k] for name in ("origin", "a", "b")])
    np.testing.assert_allclose(lattice, expected, atol=1e-9)


def test_frames_with_too_few_disks_are_not_valid():
    found = np.full((5, 9, 2), np.nan)
    every = (60, 64) + orders(1) @ LATTICE
    found[0] = every
    found[1, :2] = every[:2]
    found[2, :3] = every[:3]  # on a line
    found[3, [0, 4, 8, 1]] = every[[0, 4, 8, 1]]  # three on a line, and one beside it
    fit = fit_lattice(found, guess=GUESS).compute(**SYNC)
    valid = [True, False, False, True, False]
    for name in ("origin", "a", "b", "residual"):
        mask = fit.valid_mask[name].reshape(5, -1)
        assert mask.all(axis=1).tolist() == mask.any(axis=1).tolist() == valid
        assert np.isfinite(fit[name]).reshape(5, -1).all(axis=1).tolist() == valid
    assert fit["num_used"].tolist() == [9, 0, 0, 4, 0]


def test_chunks_and_regions_do_not_show():
    found, _ = disks(strained(24), noise=0.05, **FLAWS["both"])
    x = da.from_array(found.reshape(4, 6, *found.shape[1:]), chunks=(3, 4, 7, 1))
    with raise_if_dask_computes():
        lazy = fit_lattice(x)
        part = fit_lattice(x, roi=np.s_[1:3])
    whole = fit_lattice(found.reshape(x.shape)).compute(**SYNC)
    for name, values in lazy.compute(**SYNC).items():
        np.testing.assert_allclose(values, whole[name], atol=1e-9)
    np.testing.assert_allclose(part["a"].compute(**SYNC)[1:3], whole["a"][1:3], atol=1e-9)


class FoundUDF(ud.UDF):
    """Positions that are in the frames."""

    def get_result_buffers(self):
        return {"positions": self.buffer("nav", (25, 2)), "intensity": self.buffer("nav", (25,))}

    def process_tile(self, tile):
        self.results.positions[:] = tile
        self.results.intensity[:] = 1


def test_data_are_read_once():
    blocks = []

    def read(block, block_info):
        blocks.append(block_info[0]["chunk-location"])
        return block

    found, _ = disks(np.stack([LATTICE] * 6))
    data = da.from_array(found.astype("f4"), chunks=(2, -1, -1))
    data = data.map_blocks(read, dtype="f4", meta=np.empty((0, 0, 0), "f4"))
    axes = [ud.Axis(name="x", unit="nm", scale=0.5), ud.Axis(name="ky"), ud.Axis(name="kx")]
    positions = ud.run_udf(data, FoundUDF(), axes=axes)
    fit = fit_lattice(positions, weights="intensity")
    # each fit waits for the positions of all chunks, not for their frames
    positions, fit = ud.compute(positions, fit, **SYNC)
    assert sorted(blocks) == [(0, 0, 0), (1, 0, 0), (2, 0, 0)]
    np.testing.assert_allclose(vectors_of(fit), [LATTICE] * 6, atol=1e-4)
    assert fit.axes["residual"] == (axes[0],)
    np.testing.assert_allclose(fit_lattice(positions).compute(**SYNC)["a"], fit["a"], atol=1e-6)


@pytest.mark.full
def test_laws():
    found, _ = disks(strained(24), noise=0.05, **FLAWS["both"])
    frames = found[:, :12].reshape(4, 6, 12, 2)
    check_udf(FitLatticeUDF(GUESS), frames)
    first = np.broadcast_to(GUESS, (4, 6, 3, 2))
    check_udf(FitLatticeUDF("first rows"), np.concatenate([first, frames], axis=2))


POSITIONS = np.zeros((3, 9, 2))
WRONG = [
    (ArgumentValueError, lambda: fit_lattice(np.zeros((3, 9, 4)))),
    (ArgumentValueError, lambda: fit_lattice(np.zeros(2))),
    (ArgumentValueError, lambda: fit_lattice(np.zeros((3, 2, 2)), guess=GUESS)),
    (ArgumentTypeError, lambda: fit_lattice(POSITIONS.astype(complex), guess=GUESS)),
    (ArgumentTypeError, lambda: fit_lattice("positions")),
    (ArgumentValueError, lambda: fit_lattice({"phase": POSITIONS})),
    (ArgumentValueError, lambda: fit_lattice({"positions": POSITIONS}, weights="mass")),
    (ArgumentValueError, lambda: fit_lattice(POSITIONS, guess=GUESS, weights=np.ones((3, 8)))),
    (ArgumentValueError, lambda: fit_lattice(POSITIONS, guess=GUESS[1:])),
    (ArgumentValueError, lambda: fit_lattice(POSITIONS, guess=[(0, 0), (3, 4), (6, 8)])),
    (ArgumentTypeError, lambda: fit_lattice(POSITIONS, guess=GUESS.astype(str))),
    (ArgumentTypeError, lambda: FitLatticeUDF(None)),
    (ArgumentValueError, lambda: fit_lattice(POSITIONS, guess=GUESS, max_distance=0)),
    (ArgumentTypeError, lambda: fit_lattice(POSITIONS, guess=GUESS, max_distance="far")),
    (ArgumentValueError, lambda: guess_lattice(np.zeros((3, 9)))),
    (ArgumentTypeError, lambda: guess_lattice(POSITIONS.astype(str))),
    (ArgumentValueError, lambda: guess_lattice(np.full((3, 9, 2), np.nan))),
    (ArgumentValueError, lambda: guess_lattice(np.arange(9.0)[:, None] * (3, 4))),
]


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_wrong_arguments(number):
    error, call = WRONG[number]
    with pytest.raises(error):
        call()


def test_no_lattice_and_no_guess():
    fit = fit_lattice(np.full((3, 9, 2), np.nan))
    with pytest.raises(ArgumentValueError):
        fit.compute(**SYNC)
