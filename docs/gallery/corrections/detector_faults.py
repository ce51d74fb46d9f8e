"""
Dark frame, gain and dead pixels
================================

A detector has an offset, its columns have different gains, and some pixels are dead or hot. A
``CorrectionSet`` describes these faults, and each run can correct them before a UDF sees the
frames. The file with the raw frames is not changed.

See also: :doc:`Corrections </user-guide/analysis/corrections>`,
:class:`~udfdask.corrections.CorrectionSet`.
"""

import numpy as np

import udfdask as ud
from udfdask.corrections import CorrectionSet
from udfdask.demo import make_recording
from udfdask.plotting import Panel, draw
from udfdask.udfs import SumUDF

# A perfect recording is spoiled on purpose: this is what the detector would have stored.
rng = np.random.default_rng(0)
dark = 4 + 4 * np.linspace(0, 1, 96)[:, np.newaxis] + rng.uniform(0, 1, (96, 96))
sensitivity = 1 + 0.2 * rng.standard_normal(96) * np.ones((96, 1))
dead = rng.random((96, 96)) < 0.008
sensitivity[dead], dark[rng.random((96, 96)) < 0.004] = 0, 60_000
hot = dark > 50_000
scan = make_recording(nav_shape=(20, 24), sig_shape=(96, 96)) * sensitivity + dark

gain = 1 / np.where(dead, 1, sensitivity)
corrections = CorrectionSet(dark=dark, gain=gain, excluded_pixels=dead | hot)
raw = ud.run_udf(scan, SumUDF())
corrected = ud.run_udf(scan, SumUDF(), corrections=corrections)
raw, corrected = ud.compute(raw, corrected)  # the frames are made once for both

axes = tuple(ud.Axis(name=n, unit="mrad", scale=0.5, offset=-24) for n in ("ky", "kx"))
look = {"axes": axes, "style": "pattern", "log": True, "label": "counts"}
panels = [
    Panel(title="As recorded", values=np.clip(raw["intensity"], 1e3, 3e4), **look),
    Panel(title="Corrected", values=corrected["intensity"], **look),
]
figure = draw(panels)
