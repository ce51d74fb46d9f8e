"""
A region of interest: the pattern of the particles alone
========================================================

A mask over the scan selects the frames of a run. Here the mask comes from a bright-field image, so
that one pass gives the mean pattern of the particles, and another that of everything else. Chunks
without a selected frame are not loaded.

See also: :doc:`Writing a UDF </user-guide/writing/basics>`, :func:`~udfdask.run_udf`.
"""

import matplotlib.pyplot as plt

import udfdask as ud
from udfdask.demo import make_recording
from udfdask.udfs import StdDevUDF, VirtualDetectorUDF

# persist() keeps the frames in memory, because three runs use them.
scan = make_recording(nav_shape=(48, 64), sig_shape=(64, 64)).persist()
bright = ud.run_udf(scan, VirtualDetectorUDF("disk", r=5))["intensity"].compute()
particles = bright < 0.85 * bright.max()
inside = ud.run_udf(scan, StdDevUDF(), roi=particles)["mean"]
outside = ud.run_udf(scan, StdDevUDF(), roi=~particles)["mean"]
inside, outside = ud.compute(inside, outside)

figure, axes = plt.subplots(1, 3, figsize=(11, 3.2), width_ratios=(1.3, 1, 1), layout="constrained")
axes[0].imshow(bright, cmap="gray", extent=(0, 32, 24, 0))
axes[0].contour(particles, [0.5], colors="orange", extent=(0, 32, 24, 0), origin="upper")
axes[0].set(title="Bright field and region", xlabel="x (nm)", ylabel="y (nm)")
for panel, pattern, name in zip(axes[1:], (inside, outside), ("Particles", "Matrix"), strict=True):
    image = panel.imshow(
        pattern, norm="log", cmap="inferno", vmin=0.1, vmax=40, extent=(-26, 26, 26, -26)
    )
    panel.set(title=f"{name}: mean pattern", xlabel="kx (mrad)", ylabel="ky (mrad)")
figure.colorbar(image, ax=axes, label="counts")
