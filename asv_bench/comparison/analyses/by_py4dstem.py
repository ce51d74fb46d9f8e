"""The analyses of py4DSTEM 0.14.

Its rows and columns are called x and y. Lengths are in angstroms, and C1 is minus our defocus.
"""

from __future__ import annotations

import json

import matplotlib as mpl
import numpy as np
import py4DSTEM
from py4DSTEM.braggvectors.diskdetection import find_Bragg_disks
from py4DSTEM.process.phase import DPC, Parallax

mpl.use("Agg")
QUIET = {"progress_bar": False}


def _cube(folder, name, about=None):
    cube = py4DSTEM.DataCube(np.load(folder / f"{name}.npy", mmap_mode="r"))
    if about is not None:
        cube.calibration.set_R_pixel_size(10 * about["step"])
        cube.calibration.set_R_pixel_units("A")
        cube.calibration.set_Q_pixel_size(about["pixel"])
        cube.calibration.set_Q_pixel_units("mrad")
    return cube


def _calibrated(folder, name):
    return _cube(folder, name, json.loads((folder / f"{name}.json").read_text()))


def dpc(folder):
    solver = DPC(_calibrated(folder, "large"), energy=300e3, verbose=False)
    known = {"force_com_rotation": 0, "force_com_transpose": False}
    plots = {"plot_center_of_mass": False, "plot_rotation": False}
    solver.preprocess(**known, **plots, fit_function="constant", vectorized_com_calculation=True)
    solver.reconstruct(**QUIET, gaussian_filter=False, butterworth_filter=False)
    return {"phase": solver.object_phase}


def parallax(folder):
    solver = Parallax(datacube=_calibrated(folder, "defocused"), energy=300e3, verbose=False)
    solver.preprocess(plot_average_bf=False, threshold_intensity=0.5, edge_blend=0)
    solver.reconstruct(**QUIET, plot_aligned_bf=False, plot_convergence=False)
    plots = {"plot_CTF_comparison": False, "plot_BF_shifts_comparison": False}
    solver.aberration_fit(max_radial_order=2, max_angular_order=2, **plots)
    solver.aberration_correct(plot_corrected_phase=False)
    image = solver._crop_padded_object(solver._recon_BF)
    phase = solver._crop_padded_object(solver._recon_phase_corrected)
    return {"defocus": -solver.aberrations_C1 / 10, "image": image, "phase": phase}


def _found(folder):
    cube, template = _cube(folder, "crystal"), np.load(folder / "template.npy")
    kernel = np.zeros(cube.shape[2:])
    kernel[tuple(slice(n) for n in template.shape)] = template
    kernel = np.roll(kernel, [-(n // 2) for n in template.shape], (0, 1))
    return find_Bragg_disks(
        cube,
        template=kernel,
        corrPower=1,
        sigma_cc=0.5,
        subpixel="multicorr",
        upsample_factor=16,
        minRelativeIntensity=0.02,
        minPeakSpacing=6,
        edgeBoundary=6,
    )


def disks(folder):
    bragg, (ny, nx) = _found(folder), np.load(folder / "crystal.npy", mmap_mode="r").shape[:2]
    positions = np.full((ny, nx, 70, 2), np.nan)
    for y, x in np.ndindex(ny, nx):
        points = bragg.raw[y, x].data
        positions[y, x, : len(points)] = np.stack([points["qx"], points["qy"]], axis=-1)
    return {"positions": positions}


def strain(folder):
    bragg = _found(folder)
    bragg.measure_origin()
    bragg.fit_origin(plot=False)
    bragg.calibrate()
    fit = py4DSTEM.StrainMap(bragg)
    fit.choose_basis_vectors(minSpacing=10, edgeBoundary=6, maxNumPeaks=100)
    fit.fit_basis_vectors(max_peak_spacing=4)
    fit.get_strain()
    names = {"exx": "e_yy", "eyy": "e_xx", "exy": "e_xy", "rotation": "theta"}
    return {ours: fit.get_slice(name).data for ours, name in names.items()}


WORK = {"dpc": dpc, "parallax": parallax, "disks": disks, "strain": strain}
