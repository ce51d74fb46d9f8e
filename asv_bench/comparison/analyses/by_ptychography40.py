"""Single side band of ptychography40, in LiberTEM."""

from __future__ import annotations

import json
import os

import numpy as np
from libertem.api import Context
from ptychography40.reconstruction.common import wavelength
from ptychography40.reconstruction.ssb import SSB_UDF

CONTEXT = Context.make_with("threads", cpus=int(os.environ["OMP_NUM_THREADS"]))


def side_band(folder):
    about = json.loads((folder / "focused.json").read_text())
    udf = SSB_UDF(
        lamb=wavelength(300),
        dpix=about["step"] * 1e-9,
        semiconv=0.02,
        semiconv_pix=20 / about["pixel"],
        dtype=np.float32,
    )
    data = CONTEXT.load("npy", path=str(folder / "focused.npy"))
    return {"phase": CONTEXT.run_udf(dataset=data, udf=udf)["phase"].data}


WORK = {"side band": side_band}
