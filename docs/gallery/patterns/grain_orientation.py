"""
Grain orientation from the Fourier series of a ring
===================================================

Along a ring with six reflections, the intensity has a period of 60 degrees. ``RadialFourierUDF``
computes the Fourier series of this intensity. The phase of order 6 is the orientation of the grain,
and its amplitude says how clear the reflections are.

See also: :doc:`Masks </user-guide/analysis/masks>`, :class:`~udfdask.udfs.RadialFourierUDF`.
"""

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np

import udfdask as ud
from udfdask.masks import polar_map
from udfdask.udfs import RadialFourierUDF

# Twenty grains. Each has six reflections, turned by an angle of its own.
rng = np.random.default_rng(3)
centers, turns = rng.uniform(0, (64, 80), (20, 2)), rng.uniform(0, np.pi / 3, 20)
y, x = np.mgrid[:64, :80]
grain = np.hypot(y[..., None] - centers[:, 0], x[..., None] - centers[:, 1]).argmin(axis=-1)
radius, angle = polar_map(centerX=24, centerY=24, imageSizeX=48, imageSizeY=48)
ring = np.exp(-(((radius - 15) / 1.5) ** 2))
spots = np.exp(9 * (np.cos(6 * (angle - turns[:, None, None])) - 1))  # a pattern for each grain
patterns = 0.3 + 30 * np.exp(-((radius / 3) ** 2)) + 4 * ring * spots
scan = da.from_array(rng.poisson(patterns[grain]).astype("uint8"), chunks=(16, 80, 48, 48))

result = ud.run_udf(scan, RadialFourierUDF(ri=11, r=19, max_order=6)).compute()
series = result["coefficients"]  # shape (64, 80, 7): orders 0 to 6
orientation = np.degrees(np.angle(series[..., 6])) / 6 % 60
strength = abs(series).mean(axis=(0, 1)) / abs(series[..., 0]).mean()

figure, (left, right) = plt.subplots(
    1, 2, figsize=(8.6, 3.5), width_ratios=(1.5, 1), layout="constrained"
)
image = left.imshow(orientation, cmap="hsv", vmin=0, vmax=60, extent=(0, 160, 128, 0))
left.set(title="Orientation of the grains", xlabel="x (nm)", ylabel="y (nm)")
figure.colorbar(image, label="angle (degrees)")
right.bar(range(1, 7), strength[1:], color="slategray")
right.set(title="Symmetry of the ring", xlabel="order", ylabel="relative amplitude")
