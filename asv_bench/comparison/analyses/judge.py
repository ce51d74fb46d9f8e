"""Compare results with what is true about the simulated recordings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from comparison.analyses import data

Found = Mapping[str, Any]


def phase_error(found: Found, true: np.ndarray) -> str:
    """Return the scale of a phase, with its sign, and the error without the scale and the mean."""
    phase, true = (np.asarray(p, np.float64) - np.mean(p) for p in (found["phase"], true))
    scale = np.sum(phase * true) / np.sum(true**2)
    return f"{np.std(phase / scale - true):.3f} rad, scale {scale:.2f}"


def likeness(one: np.ndarray, other: np.ndarray) -> str:
    """Return the correlation of two images."""
    return f"correlation {np.corrcoef(np.ravel(one), np.ravel(other))[0, 1]:.3f}"


def parallax(found: Found) -> str:
    """Return the error of the defocus, and how alike the phase is."""
    error = float(found["defocus"]) - data.DEFOCUSED.defocus
    true = data.with_contrast(1, absolute=True)
    return f"defocus {error:+.2f} nm, {likeness(found['phase'], true)}"


def disks(found: Found) -> str:
    """Return errors of disks within 3 pixels of their true places, and how many there are."""
    true, positions = data.true_disks(), found["positions"]
    distances = np.linalg.norm(true[:, :, :, np.newaxis] - positions[:, :, np.newaxis], axis=-1)
    nearest = np.nanmin(np.where(np.isnan(distances), np.inf, distances), axis=-1)
    hit = nearest < 3
    rms = np.sqrt(np.mean(nearest[hit] ** 2) / 2)
    return f"{rms:.3f} px along each axis, {100 * hit.mean():.1f} % found"


def strain(found: Found) -> str:
    """Return the root-mean-square errors of the three strains, without their means."""
    errors = []
    for name in ("exx", "eyy", "exy"):
        error = found[name] - data.true_strain()[name]
        errors.append(f"{100 * np.nanstd(error):.3f}")
    return f"{', '.join(errors)} %"


ERRORS: dict[str, Callable[[Found], str]] = {
    "dpc": lambda found: phase_error(found, data.LARGE.blurred_phase),
    "side band": lambda found: phase_error(found, data.FOCUSED.phase),
    "parallax": parallax,
    "tilt-corrected": lambda f: likeness(f["image"], data.with_contrast(2, absolute=False)),
    "disks": disks,
    "expected disks": disks,
    "strain": strain,
}

MAIN = {"dpc": "phase", "side band": "phase", "parallax": "phase", "tilt-corrected": "image"}


def agreement(work: str, found: Found, ours: Found) -> str:
    """Return how alike results are to ours: correlations, or differences of disks or strain."""
    if work in MAIN:
        return likeness(found[MAIN[work]], ours[MAIN[work]])
    if work == "strain":
        return f"{100 * np.nanstd(found['exx'] - ours['exx']):.3f} %"
    one, other = ours["positions"], found["positions"]
    distances = np.linalg.norm(one[:, :, :, np.newaxis] - other[:, :, np.newaxis], axis=-1)
    nearest = np.min(np.where(np.isnan(distances), np.inf, distances), axis=-1)
    return f"{np.sqrt(np.mean(nearest[nearest < 3] ** 2) / 2):.3f} px"
