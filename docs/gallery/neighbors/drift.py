"""
Drift of a movie
================

During a series of images, the sample drifts. ``ScanDriftUDF`` measures the shift between each
image and the image before it by cross correlation. ``integrate_drift`` adds up these shifts, and
``descan=`` removes them from the sum of all images.

See also: :doc:`Neighborhoods </user-guide/writing/neighborhoods>`,
:class:`~udfdask.udfs.ScanDriftUDF`, :func:`~udfdask.udfs.integrate_drift`.
"""

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np

import udfdask as ud
from udfdask.corrections import Descan
from udfdask.udfs import ScanDriftUDF, SumUDF, integrate_drift

# A movie of 24 images: particles on a film that moves by about one pixel from image to image.
rng = np.random.default_rng(2)
time = np.arange(24)
drift = np.stack([0.7 * time, 9 * np.sin(time / 8)], axis=-1)
y, x = np.indices((96, 96))[:, np.newaxis] - drift.T[:, :, np.newaxis, np.newaxis]
images = np.full((24, 96, 96), 160.0)
for py, px, radius in rng.uniform((12, 18, 1.5), (68, 80, 4), (40, 3)):
    images -= 100 * np.exp(-((np.hypot(y - py, x - px) / radius) ** 2))
counts = rng.poisson(np.maximum(images, 10)).astype("uint16")
movie = da.from_array(counts, chunks=(6, 96, 96))

udf = ScanDriftUDF(max_shift=4)
shifts = integrate_drift(ud.run_udf(movie, udf)["shifts"].compute())
before = ud.run_udf(movie, SumUDF())["intensity"]
after = ud.run_udf(movie, SumUDF(), descan=Descan(shifts, subpixel=True, fill=160))["intensity"]
before, after = ud.compute(before, after)

figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained")
panels = zip(axes[:2], (after, before), ("Drift removed", "Sum of 24 images"), strict=True)
for panel, image, title in panels:
    panel.imshow(image, cmap="gray", extent=(0, 4.8, 4.8, 0))
    panel.set(title=title, xlabel="x (nm)", ylabel="y (nm)")
axes[2].plot(*(0.05 * drift.T[::-1]), color="lightgray", lw=5, label="true")
axes[2].plot(*(0.05 * shifts.T[::-1]), ".-", color="crimson", lw=1, label="measured")
axes[2].set(title="Drift", xlabel="x (nm)", ylabel="y (nm)", aspect="equal")
axes[2].invert_yaxis()
axes[2].legend()
