"""
Results during a run
====================

``run_udf_iter`` yields a snapshot of the results each time another chunk has been processed. Four
snapshots are shown here side by side. A notebook or a window shows them as one live picture with
``plots=True``. You can stop a bad scan after a minute.

See also: :doc:`Watching a run </user-guide/running/watching>`, :func:`~udfdask.run_udf_iter`,
:class:`~udfdask.plotting.LivePlot`.
"""

import matplotlib.pyplot as plt
import numpy as np

import udfdask as ud
from udfdask.demo import make_recording
from udfdask.udfs import CoMUDF

scan = make_recording(nav_shape=(48, 64), sig_shape=(64, 64), chunks=(12, 16, -1, -1))

# The synchronous scheduler takes one chunk after another, so this picture is always the same.
# Other schedulers merge chunks as they end.
states = []
for snapshot in ud.run_udf_iter(scan, CoMUDF(r=9), scheduler="synchronous"):
    if snapshot.n_merged in (3, 7, 11, 16):
        magnitude = snapshot.buffers[0]["magnitude"]
        states.append((snapshot.n_merged, np.where(snapshot.damage, magnitude, np.nan)))

figure, axes = plt.subplots(2, 2, figsize=(8.2, 6), layout="constrained", sharex=True, sharey=True)
for panel, (merged, magnitude) in zip(axes.ravel(), states, strict=True):
    panel.set_facecolor("lavender")
    image = panel.imshow(0.8 * magnitude, vmax=1, cmap="magma", extent=(0, 32, 24, 0))
    panel.set_title(f"{merged} of 16 chunks")
axes[1, 0].set(xlabel="x (nm)", ylabel="y (nm)")
figure.colorbar(image, ax=axes, label="deflection (mrad)", shrink=0.7)
