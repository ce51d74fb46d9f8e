"""The analyses of udfdask."""

from __future__ import annotations

import json
import os

import numpy as np

import udfdask as ud
from udfdask.analyses import (
    TiltCorrectedUDF,
    find_disks,
    fit_lattice,
    integrated_dpc,
    parallax,
    single_side_band,
    strain_map,
)
from udfdask.io import open_file
from udfdask.udfs import CorrelationUDF

THREADS = int(os.environ["OMP_NUM_THREADS"])
HOW = {"scheduler": "threads", "num_workers": THREADS}


def _opened(folder, name):
    """Return the array of a file, and the options of a run: axes and voltage."""
    about = json.loads((folder / f"{name}.json").read_text())
    scan = [ud.Axis(name=n, unit="nm", scale=about["step"]) for n in "yx"]
    pixel, n = about["pixel"], about["pixels"]
    offset = -(n // 2) * pixel
    frame = [ud.Axis(name=k, unit="mrad", scale=pixel, offset=offset) for k in ("ky", "kx")]
    return open_file(folder / f"{name}.npy").array, {"axes": [*scan, *frame], "voltage": "300 kV"}


def dpc(folder):
    x, options = _opened(folder, "large")
    return {"phase": integrated_dpc(x, **options)["phase"].compute(**HOW)}


def side_band(folder):
    x, options = _opened(folder, "focused")
    result = single_side_band(x, semiangle="20 mrad", **options)
    return {"phase": result["phase"].compute(**HOW)}


def measured_parallax(folder):
    x, options = _opened(folder, "defocused")
    found = parallax(x, semiangle="20 mrad", **options).compute(**HOW)
    return {name: found[name] for name in ("phase", "image", "defocus")}


def tilt_corrected(folder):
    x, options = _opened(folder, "defocused")
    udf = TiltCorrectedUDF("20 mrad", defocus=20, upsampling=2)
    return {"image": ud.run_udf(x, udf, **options)["image"].compute(**HOW)}


def disks(folder):
    x, template = open_file(folder / "crystal.npy").array, np.load(folder / "template.npy")
    return {"positions": find_disks(x, template)["positions"].compute(**HOW)}


def expected_disks(folder):
    x, template = open_file(folder / "crystal.npy").array, np.load(folder / "template.npy")
    udf = CorrelationUDF(np.load(folder / "expected.npy"), template, steps=6)
    return {"positions": ud.run_udf(x, udf, sig_dims=2)["refineds"].compute(**HOW)}


def strain(folder):
    x, template = open_file(folder / "crystal.npy").array, np.load(folder / "template.npy")
    found = strain_map(fit_lattice(find_disks(x, template), weights="intensity")).compute(**HOW)
    return {name: found[name] for name in ("exx", "eyy", "exy", "rotation")}


WORK = {
    "dpc": dpc,
    "side band": side_band,
    "parallax": measured_parallax,
    "tilt-corrected": tilt_corrected,
    "disks": disks,
    "expected disks": expected_disks,
    "strain": strain,
}
