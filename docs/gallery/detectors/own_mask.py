"""
A mask of your own: dark field of single grains
===============================================

A virtual aperture on a part of a diffraction ring makes one family of grains bright. Three
apertures at different angles are three masks, and their images are the red, green and blue of one
picture. Any array in the shape of a frame is a mask.

See also: :doc:`Masks </user-guide/analysis/masks>`, :class:`~udfdask.udfs.ApplyMasksUDF`,
:func:`~udfdask.masks.polar_map`.
"""

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np

import udfdask as ud
from udfdask.masks import polar_map
from udfdask.udfs import ApplyMasksUDF

# Thirty grains. Each has six reflections, turned by an angle of its own.
rng = np.random.default_rng(5)
centers, turns = rng.uniform(0, (64, 80), (30, 2)), rng.permutation(30) * np.pi / 90
y, x = np.mgrid[:64, :80]
grain = np.hypot(y[..., None] - centers[:, 0], x[..., None] - centers[:, 1]).argmin(axis=-1)
radius, angle = polar_map(centerX=24, centerY=24, imageSizeX=48, imageSizeY=48)
ring = np.exp(-(((radius - 15) / 1.5) ** 2))
spots = np.exp(9 * (np.cos(6 * (angle - turns[:, None, None])) - 1))  # a pattern for each grain
patterns = 0.3 + 30 * np.exp(-((radius / 3) ** 2)) + 8 * ring * spots
scan = da.from_array(rng.poisson(patterns[grain]).astype("uint8"), chunks=(16, 80, 48, 48))


def aperture(direction):
    """Two opposite pieces of the ring, 20 degrees wide, at an angle in degrees."""
    distance = (np.degrees(angle) - direction + 90) % 180 - 90
    return (abs(distance) < 10) & (abs(radius - 15) < 4)


names = {"red": aperture(0), "green": aperture(20), "blue": aperture(40)}
images, total = ud.compute(*ud.run_udf(scan, [ApplyMasksUDF(names), ud.udfs.SumUDF()]))
rgb = np.stack([images[name] for name in names], axis=-1) / images["intensity"].max()

figure, (left, right) = plt.subplots(1, 2, figsize=(8.6, 3.6), layout="constrained")
left.imshow(rgb, extent=(0, 160, 128, 0))
left.set(title="Dark field of three apertures", xlabel="x (nm)", ylabel="y (nm)")
right.imshow(np.log1p(total["intensity"]), cmap="gray", extent=(-12, 12, 12, -12))
for name, mask in names.items():
    right.contour(mask, [0.5], colors=name, extent=(-12, 12, 12, -12), origin="upper")
right.set(title="Apertures on the sum", xlabel="kx (1/nm)", ylabel="ky (1/nm)")
