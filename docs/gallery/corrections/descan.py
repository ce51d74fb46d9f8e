"""
Remove the descan
=================

While the beam scans the sample, the pattern often moves over the detector. The center of mass
measures this movement, a plane through it leaves out the effects of the sample, and ``descan=``
shifts each frame back before a UDF sees it.

See also: :doc:`Descan </user-guide/analysis/descan>`, :class:`~udfdask.corrections.Descan`,
:class:`~udfdask.udfs.CoMUDF`.
"""

import dask.array as da
import numpy as np

import udfdask as ud
from udfdask.demo import make_recording
from udfdask.plotting import Panel, draw
from udfdask.udfs import CoMUDF, SumUDF

# Move the frames of a recording, up to 7 pixels, as badly aligned scan coils do.
frames = make_recording(nav_shape=(32, 48), sig_shape=(72, 72)).compute()
y, x = np.mgrid[:32, :48]
moves = np.rint(np.stack([0.10 * x + 0.14 * y - 4.6, 0.15 * x - 0.12 * y - 1.7], -1)).astype(int)
for place in np.ndindex(y.shape):
    frames[place] = np.roll(frames[place], moves[place], axis=(0, 1))
scan = da.from_array(frames, chunks=(8, 48, 72, 72))

# The disk of the center of mass holds the direct beam wherever it is, and no other disk.
com = ud.run_udf(scan, CoMUDF(r=11)).compute()
measured = com["raw_shifts"]
terms = np.stack([np.ones(y.size), y.ravel(), x.ravel()], axis=-1)
plane = terms @ np.linalg.lstsq(terms, measured.reshape(-1, 2), rcond=None)[0]
shifts = plane.reshape(measured.shape)
before = ud.run_udf(scan, SumUDF())
after = ud.run_udf(scan, SumUDF(), descan=shifts)
before, after = ud.compute(before, after)

nm = tuple(ud.Axis(name=name, unit="nm", scale=0.5) for name in "yx")
mrad = tuple(ud.Axis(name=n, unit="mrad", scale=0.6, offset=-21.6) for n in ("ky", "kx"))
look = {"axes": mrad, "style": "pattern", "log": True, "label": "counts"}
panels = [
    Panel(title="Sum of all frames", values=before["intensity"], **look),
    Panel(title="Sum without descan", values=after["intensity"], **look),
    Panel(title="Shift along y", values=shifts[..., 0], axes=nm, style="signed", label="px"),
    Panel(title="Shift along x", values=shifts[..., 1], axes=nm, style="signed", label="px"),
]
figure = draw(panels)
