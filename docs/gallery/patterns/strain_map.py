"""
Strain
======

Three steps lead from diffraction patterns to maps of strain: find the disks of each frame, fit a
lattice to them, and compare the lattices. Rotation is positive clockwise. Here the maps are above
those of the simulated crystal.

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
limits = {"exx": 3, "eyy": 0.6, "exy": 0.4, "rotation": 0.4}
for column, (name, limit) in zip(axes.T, limits.items(), strict=True):
    look = {"cmap": "RdBu_r", "vmin": -limit, "vmax": limit, "extent": (0, 24, 16, 0)}
    for panel, maps, kind in zip(column, (strain, true), ("measured", "true"), strict=True):
        image = panel.imshow(100 * maps[name], **look)
        panel.set(title=f"{kind} {name}", xlabel="x (nm)", ylabel="y (nm)")
        panel.label_outer()
    unit = "0.01 rad" if name == "rotation" else "%"
    figure.colorbar(image, ax=column, label=unit, location="bottom", shrink=0.9)
