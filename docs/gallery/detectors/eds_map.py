"""
EDS: net counts of three lines
==============================

A map of an element adds up the counts in an energy window around one of its lines. The background
under the line is estimated from windows on both sides. A mask with positive weights on the line and
negative weights at its sides does both in one pass.

See also: :doc:`Axes and units </user-guide/concepts/units>`,
:class:`~udfdask.udfs.ApplyMasksUDF`, :func:`~udfdask.masks.window`.
"""

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import LinearSegmentedColormap

import udfdask as ud
from udfdask.udfs import ApplyMasksUDF, SumUDF

# Copper particles on an iron oxide film, 512 channels of 20 eV.
energy = 0.02 * np.arange(512)
lines = {"O": 0.525, "Fe": 6.40, "Cu": 8.05}  # K lines, keV
y, x = np.mgrid[:64, :80]
copper = np.zeros((64, 80))
for py, px, size in [(18, 20, 10), (42, 40, 14), (16, 60, 8), (50, 68, 7)]:
    copper = np.maximum(copper, 1 / (1 + np.exp(np.hypot(y - py, x - px) - size)))
iron = (1 - copper) * (0.6 + 0.4 * np.sin(x / 9) * np.sin(y / 7))
weights = {"O": 1 - 0.9 * copper, "Fe": 1.5 * iron, "Cu": 1.5 * copper}
spectra = np.full((64, 80, 1), 0.15) * np.exp(-energy / 3) * (energy > 0.2)
for name, line in lines.items():
    spectra = spectra + 1.5 * weights[name][..., None] * np.exp(-(((energy - line) / 0.07) ** 2))
counts = np.random.default_rng(0).poisson(spectra).astype("uint16")
scan = da.from_array(counts, chunks=(16, 80, 512))

distances = {name: abs(energy - line) for name, line in lines.items()}
masks = {}
for name, distance in distances.items():
    peak, sides = distance < 0.14, (distance > 0.16) & (distance < 0.3)
    masks[name] = peak - sides * (peak.sum() / sides.sum())  # zero for a flat background
maps, total = ud.compute(*ud.run_udf(scan, [ApplyMasksUDF(masks), SumUDF()], sig_dims=1))

figure, axes = plt.subplots(2, 2, figsize=(8.6, 6.6), layout="constrained")
colors = {"O": "red", "Fe": "lime", "Cu": "deepskyblue"}
axes[0, 0].semilogy(energy, total["intensity"] + 1, "k", lw=0.8)
axes[0, 0].set(title="Sum of all spectra", xlabel="energy (keV)", ylabel="counts", xlim=(0, 10))
for name, panel in zip(lines, axes.ravel()[1:], strict=True):
    axes[0, 0].axvspan(lines[name] - 0.14, lines[name] + 0.14, color=colors[name], alpha=0.3)
    shades = LinearSegmentedColormap.from_list(name, ["black", colors[name], "white"])
    image = panel.imshow(maps[name], cmap=shades, vmin=0, extent=(0, 160, 128, 0))
    panel.set(title=f"{name} K", xlabel="x (nm)", ylabel="y (nm)")
    figure.colorbar(image, label="net counts")
