"""Simulated recordings as .npy files, and what is true about them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy import fft

from udfdask.analyses import strain_map
from udfdask.analyses.aberrations import Aberrations
from udfdask.demo import PhaseObject, crystal, make_recording
from udfdask.geometry.electrons import wavelength
from udfdask.masks import DiskTemplate

FOCUSED = PhaseObject()
LARGE = replace(FOCUSED, nav_shape=(128, 128))
DEFOCUSED = replace(LARGE, defocus=20.0, sig_shape=(32, 32), pixel=2.0)
PHASE_OBJECTS = {"focused": FOCUSED, "large": LARGE, "defocused": DEFOCUSED}

SCAN, FRAME = (32, 48), (96, 96)
RADIUS = 6


def make(folder: Path) -> None:
    """Write what is not there yet."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, thin in PHASE_OBJECTS.items():
        about = {"step": thin.step, "pixel": thin.pixel, "pixels": thin.sig_shape[0]}
        (folder / f"{name}.json").write_text(json.dumps(about))
        _save(folder / f"{name}.npy", lambda thin=thin: thin.array)
    _save(folder / "crystal.npy", lambda: make_recording(SCAN, FRAME))
    np.save(folder / "template.npy", DiskTemplate(radius=RADIUS, radius_outer=1.5 * RADIUS).array())
    np.save(folder / "expected.npy", _inside(_lattice_points(), 2 * RADIUS))


def _save(path: Path, make_array) -> None:
    if not path.exists():
        np.save(path, make_array().compute())


def _lattice_points() -> np.ndarray:
    """Return the centers (y, x) of all disks without strain and deflection."""
    return np.array(crystal._reflections(FRAME)) + np.array(FRAME) // 2


def _inside(points: np.ndarray, margin: float) -> np.ndarray:
    far = np.all((points >= margin) & (points <= np.array(FRAME) - 1 - margin), axis=-1)
    return points[far]


def true_disks() -> np.ndarray:
    """Return the true centers (y, x) of the disks of `expected.npy`, shape (*scan, n, 2)."""
    y, x = np.indices(SCAN)
    _, *shift = crystal._specimen(y.ravel(), x.ravel(), SCAN)
    moved = np.stack([s.reshape(SCAN) for s in shift], axis=-1) + np.array(FRAME) // 2
    spots = _inside(_lattice_points(), 2 * RADIUS) - np.array(FRAME) // 2
    return moved[:, :, np.newaxis] + spots @ _distortion()


def _distortion() -> np.ndarray:
    """Return the matrices, shape (1, n, 2, 2), that strain the diffraction pattern."""
    along = np.arange(SCAN[1]) / (SCAN[1] - 1) - 0.5
    one, zero = np.ones_like(along), np.zeros_like(along)
    rows = [one + 0.2 * crystal._STRAIN * along, zero]
    columns = [crystal._SHEAR * along, one + crystal._STRAIN * along]
    return np.moveaxis(np.array([rows, columns]), -1, 0)[np.newaxis]


def true_strain() -> dict[str, np.ndarray]:
    """Return the strain of the crystal by the formulas of udfdask's documentation."""
    vectors = np.array(crystal._LATTICE) * min(FRAME)
    strained = np.broadcast_to(vectors @ _distortion(), (*SCAN, 2, 2))
    found = strain_map(strained, reference=vectors).compute()
    return {name: found[name] for name in ("exx", "eyy", "exy", "rotation")}


def with_contrast(upsampling: int, *, absolute: bool) -> np.ndarray:
    """Return the phase of the defocused object with the contrast of its lens, or that times its
    sign."""
    fine = tuple(n * upsampling for n in DEFOCUSED.nav_shape)
    thin = replace(DEFOCUSED, nav_shape=fine, step=DEFOCUSED.step / upsampling)
    padded = np.pad(thin.phase, [(0, n) for n in fine], mode="symmetric")
    qy, qx = fft.fftfreq(len(padded), thin.step)[:, None], fft.rfftfreq(len(padded), thin.step)
    lens = Aberrations(DEFOCUSED.defocus)
    about = {"wavelength": wavelength(300e3), "semiangle": 1e-3 * DEFOCUSED.semiangle}
    contrast = lens.contrast_transfer(qy, qx, **about)
    spectrum = fft.rfft2(padded) * (abs(contrast) if absolute else contrast)
    return fft.irfft2(spectrum, s=padded.shape)[: fine[0], : fine[1]]
