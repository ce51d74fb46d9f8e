"""
Mean and variance of all frames
===============================

The mean of all frames shows the average pattern. The variance shows which pixels change over
the scan: here the edges of the disks, because strain moves the disks. One pass gives both.

See also: :doc:`Plotting </user-guide/running/plotting>`, :class:`~udfdask.udfs.StdDevUDF`,
:class:`~udfdask.udfs.LogsumUDF`.
"""

import numpy as np

import udfdask as ud
from udfdask.demo import make_recording
from udfdask.plotting import Panel, draw
from udfdask.udfs import StdDevUDF

scan = make_recording(nav_shape=(32, 40), sig_shape=(96, 96))
moments = ud.run_udf(scan, StdDevUDF()).compute()

# Counting noise has a variance that is equal to its mean. So the ratio is 1 where nothing but noise
# changes from frame to frame.
ratio = moments["var"] / np.maximum(moments["mean"], 0.1)

axes = tuple(ud.Axis(name=n, unit="mrad", scale=0.5, offset=-24) for n in ("ky", "kx"))
look = {"axes": axes, "style": "pattern"}
panels = [
    Panel(title="Variance / mean", values=ratio, label="ratio", **look),
    Panel(title="Mean of 1280 frames", values=moments["mean"], log=True, label="counts", **look),
]
figure = draw(panels)
