"""
Average each frame with its neighbors
=====================================

At a low dose, one frame has few counts. Neighboring frames have nearly the same pattern, so their
weighted mean has less noise and keeps the pattern of the place. ``NeighborAverageUDF`` computes it
for any part of the scan, also across the borders of chunks.

See also: :doc:`Neighborhoods </user-guide/writing/neighborhoods>`,
:class:`~udfdask.udfs.NeighborAverageUDF`.
"""

import numpy as np

import udfdask as ud
from udfdask.demo import make_recording
from udfdask.plotting import Panel, draw
from udfdask.udfs import NeighborAverageUDF


def low_dose(block):
    """Keep each electron with a probability of 5 percent."""
    return np.random.default_rng(0).binomial(block, 0.05).astype("uint16")


scan = make_recording(nav_shape=(24, 24), sig_shape=(96, 96), chunks=(12, 12, -1, -1))
scan = scan.map_blocks(low_dose, dtype="uint16")

# Only the frames around this position are used: roi= saves the rest of the work.
place = (12, 12)
weights = NeighborAverageUDF("gaussian", shape=7, std=1.5)
average = ud.run_udf(scan, weights, roi=place)["intensity"][place].compute()

axes = tuple(ud.Axis(name=n, unit="mrad", scale=0.5, offset=-24) for n in ("ky", "kx"))
look = {"axes": axes, "style": "pattern", "label": "counts"}
panels = [
    Panel(title="One frame", values=np.minimum(scan[place].compute(), 3), **look),
    Panel(title="Average of 49 frames", values=np.minimum(average, 1), **look),
]
figure = draw(panels)
