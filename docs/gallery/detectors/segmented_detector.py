"""
Differential phase contrast with a segmented detector
=====================================================

Electric and magnetic fields deflect the beam. The difference between the left and the right
half of the bright-field disk, divided by their sum, is an image of the deflection along x. Any
detector that a microscope has in hardware can be tried on recorded frames like this.

See also: :doc:`Masks </user-guide/analysis/masks>`, :class:`~udfdask.udfs.ApplyMasksUDF`.
"""

import matplotlib.pyplot as plt
import numpy as np

import udfdask as ud
from udfdask.demo import make_recording
from udfdask.plotting import Panel, draw
from udfdask.udfs import ApplyMasksUDF

scan = make_recording(nav_shape=(48, 64), sig_shape=(64, 64))
y, x = np.mgrid[:64, :64] - 32
disk = np.hypot(y, x) <= 6
# The row and the column of the center belong to no segment: real detectors have such a gap.
segments = {
    "A": disk & (x > 0) & (y < 0),  # y points down
    "B": disk & (x < 0) & (y < 0),
    "C": disk & (x < 0) & (y > 0),
    "D": disk & (x > 0) & (y > 0),
}

# Each mask has a name, and so has its image.
images = ud.run_udf(scan, ApplyMasksUDF(segments)).compute()
a, b, c, d = (images[name] for name in "ABCD")
total = a + b + c + d

nm = tuple(ud.Axis(name=name, unit="nm", scale=0.5) for name in "yx")
mrad = tuple(ud.Axis(name=n, unit="mrad", scale=0.8, offset=-25.6) for n in ("ky", "kx"))
dpc_x, dpc_y = (a + d - b - c) / total, (c + d - a - b) / total
frame = scan[20, 5].compute()
look = {"style": "pattern", "label": "counts", "outlines": segments}
panels = [
    Panel(title="DPC along x: (A + D - B - C) / sum", values=dpc_x, axes=nm, style="signed"),
    Panel(title="DPC along y: (C + D - A - B) / sum", values=dpc_y, axes=nm, style="signed"),
    Panel(title="Segments on one frame", values=frame, axes=mrad, **look),
    Panel(title="Bright field: sum", values=total, axes=nm, label="counts"),
]
figure = draw(panels, figure=plt.figure(figsize=(8.6, 6.8)))
