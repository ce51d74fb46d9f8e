"""The analyses of quantem 0.1. Lengths are in angstroms, and C10 is minus our defocus."""

from __future__ import annotations

import json
import os
import warnings

import matplotlib as mpl
import numpy as np
import torch
from quantem.core.datastructures import Dataset4d, Dataset4dstem
from quantem.diffraction.bragg_vectors import BraggVectors
from quantem.diffractive_imaging.direct_ptychography import DirectPtychography

mpl.use("Agg")
warnings.simplefilter("ignore")
torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))


def _solver(folder, name, **lens):
    about, frames = (
        json.loads((folder / f"{name}.json").read_text()),
        np.load(folder / f"{name}.npy", mmap_mode="r"),
    )
    step, pixel = 10 * about["step"], about["pixel"]
    data = Dataset4d.from_array(
        np.array(frames), sampling=(step, step, pixel, pixel), units=["A", "A", "mrad", "mrad"]
    )
    middle = (about["pixels"] // 2,) * 2
    return DirectPtychography.from_dataset4d(
        data,
        energy=300e3,
        semiangle_cutoff=20,
        rotation_angle=0,
        force_fitted_origin=middle,
        verbose=False,
        **lens,
    )


def side_band(folder):
    solver = _solver(folder, "focused")
    solver.reconstruct(deconvolution_kernel="ssb", verbose=False)
    return {"phase": np.asarray(solver.corrected_bf)}


def parallax(folder):
    solver = _solver(folder, "defocused")
    solver.fit_hyperparameters_cross_correlation(verbose=False)
    solver.reconstruct(deconvolution_kernel="prlx", verbose=False)
    defocus = -float(solver.hyperparameter_state.current_aberrations()["C10"]) / 10
    return {"defocus": defocus, "phase": np.asarray(solver.corrected_bf)}


def tilt_corrected(folder):
    solver = _solver(folder, "defocused", aberration_coefs={"C10": -200.0})
    options = {"parallax_flip_phase": False, "upsampling_factor": 2, "verbose": False}
    solver.reconstruct(deconvolution_kernel="prlx", **options)
    return {"image": np.asarray(solver.corrected_bf)}


def _found(folder):
    frames = np.load(folder / "crystal.npy", mmap_mode="r")
    bragg = BraggVectors.from_dataset(Dataset4dstem.from_array(np.array(frames, np.float32)))
    template = np.load(folder / "template.npy")
    probe = np.zeros(frames.shape[2:], np.float32)
    probe[tuple(slice(n) for n in template.shape)] = template
    bragg.make_template_from_probe(probe, center=tuple(n // 2 for n in template.shape))
    limits = {"min_spacing": 6, "edge_boundary": 6, "max_num_peaks": 70, "sigma_cc": 0.5}
    bragg.detect_disks(min_abs_intensity=0, progressbar=False, **limits)
    return bragg


def disks(folder):
    bragg = _found(folder)
    ny, nx = bragg.peaks.shape[:2]
    positions = np.full((ny, nx, 70, 2), np.nan)
    for y, x in np.ndindex(ny, nx):
        points = bragg.peaks[y, x].numpy()[:, :2]
        positions[y, x, : len(points)] = points
    return {"positions": positions}


def strain(folder):
    bragg = _found(folder)
    bragg.choose_basis_vectors(min_spacing=10, plot=False)
    bragg.index_peaks(plot=False)
    bragg.fit_lattice(progressbar=False, plot=False)
    found = bragg.calculate_strain_map()
    names = {"exx": "e_cc", "eyy": "e_rr", "exy": "e_rc"}
    return {ours: getattr(found, name).array for ours, name in names.items()}


WORK = {
    "side band": side_band,
    "parallax": parallax,
    "tilt-corrected": tilt_corrected,
    "disks": disks,
    "strain": strain,
}
