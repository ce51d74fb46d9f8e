"""Integrated DPC, disks and strain of pyxem 0.21, whose vectors are (y, x, correlation)."""

from __future__ import annotations

import json
import warnings

import hyperspy.api as hs
import numpy as np
import pyxem as pxm

warnings.simplefilter("ignore")
hs.preferences.General.show_progressbar = False

WAVELENGTH = 1.96875e-3
"""That of electrons of 300 keV, in nm."""


def _opened(folder, name):
    return pxm.signals.Diffraction2D(np.load(folder / f"{name}.npy", mmap_mode="r"))


def dpc(folder):
    about, signal = json.loads((folder / "large.json").read_text()), _opened(folder, "large")
    shifts = signal.get_direct_beam_position(method="center_of_mass")  # minus the center
    slopes = shifts * (-2e-3 * np.pi * about["pixel"] / WAVELENGTH)  # radians per nm
    slopes.axes_manager.navigation_axes.set(scale=about["step"], units="nm")
    return {"phase": slopes.phase_retrieval(method="frankot", mirroring=True).data}


def _found(folder):
    signal = _opened(folder, "crystal")
    signal.calibration.center = None  # the middle of a frame, between four pixels
    matched = signal.template_match(np.load(folder / "template.npy"), subtract_min=False)
    peaks = matched.get_diffraction_vectors(threshold_abs=0.25, min_distance=6, exclude_border=6)
    return peaks.subpixel_refine(matched, method="center-of-mass", square_size=8)


def disks(folder):
    vectors = _found(folder).data
    positions = np.full((*vectors.shape, 70, 2), np.nan)
    middle = (np.array(np.load(folder / "crystal.npy", mmap_mode="r").shape[2:]) - 1) / 2
    for place in np.ndindex(vectors.shape):
        points = vectors[place][:, :2]
        positions[(*place, slice(len(points)))] = points + middle
    return {"positions": positions}


def _from_direct_beam(vectors):
    nearest = np.linalg.norm(vectors[:, :2], axis=1).argmin()
    return vectors - [*vectors[nearest, :2], 0]


def strain(folder):
    vectors = _found(folder).map(_from_direct_beam, inplace=False, ragged=True)
    vectors.set_signal_type("diffraction_vectors")
    vectors._set_up_vector(scales=[1, 1, 1], column_names=["ky", "kx", "intensity"])
    middle = vectors.inav[24, 16].data[0]  # has almost no strain
    yy, xx, yx, rotation = vectors.get_strain_maps(unstrained_vectors=middle, distance=3).data
    # its shear has the sign of reciprocal space, and angles go from y to x
    return {"exx": xx, "eyy": yy, "exy": -yx, "rotation": -rotation}


WORK = {"dpc": dpc, "disks": disks, "strain": strain}
