"""
All disks of each frame
=======================

``find_disks`` looks for an image of the disk in the whole frame, so that it needs no list of
expected positions. In this scan, strain stretches the pattern along x, and particles deflect the
beam: the disks of different frames are at different places.

See also: :doc:`Finding disks </user-guide/analysis/finding-disks>`,
:func:`~udfdask.analyses.find_disks`, :class:`~udfdask.masks.DiskTemplate`.
"""

import matplotlib.pyplot as plt
import numpy as np

from udfdask.analyses import find_disks
from udfdask.demo import make_recording
from udfdask.masks import DiskTemplate

scan = make_recording(nav_shape=(16, 24), sig_shape=(96, 96)).persist()

# The disks have a radius of 6 pixels. The ring around the template removes the background.
found = find_disks(scan, DiskTemplate(radius=6, radius_outer=9)).compute()

figure, (left, right) = plt.subplots(1, 2, figsize=(8.6, 4), layout="constrained")
left.imshow(scan[3, 20], cmap="gray", vmax=20)
for y, x in found["positions"][3, 20]:
    left.add_patch(plt.Circle((x, y), 6, fill=False, color="tab:orange"))
left.set(title="One frame and its disks", xlabel="kx (px)", ylabel="ky (px)")
right.imshow(np.log1p(scan.sum(axis=(0, 1))), cmap="gray")
y, x = np.moveaxis(found["positions"], -1, 0)
points = right.scatter(x, y, c=found["intensity"], s=2, norm="log")
right.set(title="Sum of all frames, disks of each", xlabel="kx (px)", ylabel="ky (px)")
figure.colorbar(points, label="counts of a disk", shrink=0.8)
