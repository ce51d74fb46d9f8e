"""
Disk positions and strain
=========================

Strain moves the diffraction disks by fractions of a pixel. ``CorrelationUDF`` finds each disk of
each frame near its expected position. A lattice is then fitted to the disks of each frame, and its
change over the scan is the strain.

See also: :doc:`Finding disks </user-guide/analysis/finding-disks>`,
:class:`~udfdask.udfs.CorrelationUDF`, :class:`~udfdask.masks.DiskTemplate`.
"""

import matplotlib.pyplot as plt
import numpy as np

import udfdask as ud
from udfdask.demo import make_recording
from udfdask.masks import DiskTemplate
from udfdask.udfs import CorrelationUDF, SumUDF

scan = make_recording(nav_shape=(32, 48), sig_shape=(80, 80)).persist()

# Two lattice vectors (y, x) that were read from the mean pattern, and the disks inside of it.
vectors = np.array([(16.4, 2.8), (-3.6, 17.2)])
orders = np.array([(h, k) for h in range(-1, 2) for k in range(-1, 2)])
expected = (40, 40) + orders @ vectors

# The negative ring around the disk of the template makes it blind to a flat background.
template = DiskTemplate(radius=5, radius_outer=7.5)
disks, total = ud.compute(
    *ud.run_udf(scan, [CorrelationUDF(expected, template, steps=4), SumUDF()])
)
found = disks["refineds"].reshape(-1, 9, 2)

# positions = orders @ lattice + origin, for all frames at once; the origin absorbs beam shifts.
fit = np.linalg.pinv(np.hstack([orders, np.ones((9, 1))])) @ found
lattice = fit[:, :2].reshape(32, 48, 2, 2)
reference = lattice.mean(axis=(0, 1))
distortion = np.linalg.inv(reference) @ lattice - np.eye(2)
strain = -100 * distortion[..., 1, 1]  # a longer reciprocal lattice is a shorter real one

figure, (left, right) = plt.subplots(1, 2, figsize=(8.6, 3.6), layout="constrained")
limit = abs(strain).max()
extent = (0, 24, 16, 0)
image = left.imshow(strain, cmap="RdBu_r", vmin=-limit, vmax=limit, extent=extent)
left.set(title="Strain along x", xlabel="x (nm)", ylabel="y (nm)")
figure.colorbar(image, label="strain (%)", shrink=0.75)
right.imshow(np.log1p(total["intensity"]), cmap="gray")
for disk in range(9):
    right.plot(*found[:, disk, ::-1].T, ".", ms=1.5)
right.set(title="Positions in all frames", xlabel="kx (px)", ylabel="ky (px)")
