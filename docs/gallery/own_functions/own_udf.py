"""
A UDF of your own: the maximum of all frames
============================================

A rare precipitate has reflections in a few frames. They drown in the mean of all frames, but not in
the maximum. This UDF takes the maximum for each pixel. ``merge`` says how the results of two
chunks become one.

See also: :doc:`Writing a UDF </user-guide/writing/basics>`, :class:`~udfdask.UDF`,
:func:`~udfdask.testing.check_udf`.
"""

import dask.array as da
import numpy as np

import udfdask as ud
from udfdask.demo import make_recording
from udfdask.masks import circular
from udfdask.plotting import Panel, draw
from udfdask.udfs import StdDevUDF


class MaximumUDF(ud.UDF):
    def get_result_buffers(self):
        # kind="sig": one value for each pixel of the detector
        return {"maximum": self.buffer(kind="sig", dtype="float32")}

    def preprocess(self):
        # Buffers start as zeros, but a maximum can be negative.
        self.results.maximum[:] = -np.inf

    def process_tile(self, tile):
        # A tile is a stack of frames: one NumPy call for many frames is fast.
        self.results.maximum[:] = np.maximum(self.results.maximum, tile.max(axis=0))

    def merge(self, dest, src):
        dest.maximum[:] = np.maximum(dest.maximum, src.maximum)


# Add a second set of reflections to 4 of the 1024 frames.
frames = make_recording(nav_shape=(32, 32), sig_shape=(80, 80)).compute()
for step in (-2, -1, 1, 2):
    for cy, cx in [(40 + 8 * step, 40 + 12 * step), (40 + 11 * step, 40 - 7 * step)]:
        frames[20:22, 11:13] += (25 * circular(cx, cy, 80, 80, radius=2.5)).astype("uint16")
scan = da.from_array(frames, chunks=(8, 32, 80, 80))

maximum, moments = ud.compute(*ud.run_udf(scan, [MaximumUDF(), StdDevUDF()]))

axes = tuple(ud.Axis(name=n, unit="mrad", scale=0.6, offset=-24) for n in ("ky", "kx"))
look = {"axes": axes, "style": "pattern", "log": True, "label": "counts"}
panels = [
    Panel(title="Maximum of 1024 frames", values=maximum["maximum"], **look),
    Panel(title="Mean of 1024 frames", values=moments["mean"], **look),
]
figure = draw(panels)
