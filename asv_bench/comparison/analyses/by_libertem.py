"""Parallax of LiberTEM-parallax, and disks of LiberTEM-blobfinder.

Lengths of parallax are in angstroms, its shifts are whole pixels of the result, and C10 is minus
our defocus.
"""

from __future__ import annotations

import json
import os

import numpy as np
from libertem.api import Context
from libertem_blobfinder.common.patterns import UserTemplate
from libertem_blobfinder.udf.correlation import FastCorrelationUDF
from libertem_parallax import ParallaxUDF

CONTEXT = Context.make_with("threads", cpus=int(os.environ["OMP_NUM_THREADS"]))


def tilt_corrected(folder):
    about = json.loads((folder / "defocused.json").read_text())
    data = CONTEXT.load("npy", path=str(folder / "defocused.npy"))
    udf = ParallaxUDF.from_parameters(
        shape=tuple(data.shape),
        scan_sampling=(10 * about["step"],) * 2,
        energy=300e3,
        semiangle_cutoff=20,
        angular_sampling=(about["pixel"],) * 2,
        aberration_coefs={"C10": -200.0},
        rotation_angle=0.0,
        upsampling_factor=2,
    )
    return {"image": CONTEXT.run_udf(dataset=data, udf=udf)["reconstruction"].data}


def expected_disks(folder):
    data = CONTEXT.load("npy", path=str(folder / "crystal.npy"), sig_dims=2)
    template = UserTemplate(np.load(folder / "template.npy"), search=6)
    peaks = np.rint(np.load(folder / "expected.npy")).astype(int)
    udf = FastCorrelationUDF(peaks=peaks, match_pattern=template)
    return {"positions": CONTEXT.run_udf(dataset=data, udf=udf)["refineds"].data}


WORK = {"tilt-corrected": tilt_corrected, "expected disks": expected_disks}
