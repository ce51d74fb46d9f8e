"""
Strain
======

Three steps lead from diffraction patterns to maps of strain: find the disks of each frame, fit a
lattice to them, and compare the lattices. Here the maps are above those of the simulated crystal.
Rotation is positive clockwise.

See also: :doc:`Strain </user-guide/analysis/strain>`, :func:`~udfdask.analyses.find_disks`,
:func:`~udfdask.analyses.fit_lattice`, :func:`~udfdask.analyses.strain_map`.
"""

import matplotlib.pyplot as plt
import numpy as np

from udfdask.analyses import find_disks, fit_lattice, strain_map
from udfdask.demo import make_recording
from udfdask.masks import DiskTemplate

scan = make_recording(nav_shape=(32, 48), sig_shape=(96, 96))

# Bright disks have the largest weights, because noise of counts limits the precision.
disks = find_disks(scan, DiskTemplate(radius=6, radius_outer=9))
lattice = fit_lattice(disks, weights="intensity")
strain = strain_map(lattice).compute()

# How the lattice of the simulated crystal changes from the left to the right.
along = np.linspace(-0.5, 0.5, 48)[:, None, None]
change = np.eye(2) + along * [[0.012, 0], [0.015, 0.06]]
true = strain_map(np.tile(change, (32, 1, 1, 1))).compute()

figure, axes = plt.subplots(2, 4, figsize=(10, 4), sharex=True, sharey=True, layout="compressed")
for pair, name in zip(axes.T, ("exx", "eyy", "exy", "rotation"), strict=True):
    factor, unit = (1000, "mrad") if name == "rotation" else (100, "%")
    limit = factor * abs(true[name]).max()
    look = {"cmap": "RdBu_r", "vmin": -limit, "vmax": limit, "extent": (0, 24, 16, 0)}
    for panel, maps in zip(pair, (strain, true), strict=True):
        image = panel.imshow(factor * maps[name], **look)
    pair[0].set_title(name)
    pair[1].set_xlabel("x (nm)")
    figure.colorbar(image, ax=pair, label=unit, location="bottom", shrink=0.9)
axes[0, 0].set_ylabel("measured\ny (nm)")
axes[1, 0].set_ylabel("truth\ny (nm)")
