"""
Find the center of a ring pattern
=================================

The pattern is rarely in the middle of the detector. ``find_center`` finds its center to a part of a
pixel. The radial profile shows the difference: around the right center, rings become sharp peaks.

See also: :doc:`Centers and ellipses </user-guide/analysis/centers>`,
:func:`~udfdask.udfs.find_center`, :class:`~udfdask.udfs.RadialProfileUDF`.
"""

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np

import udfdask as ud
from udfdask.udfs import RadialProfileUDF, SumUDF, find_center

# Polycrystalline gold. The rings are around (52.3, 71.6), not around the middle (64, 64).
y, x = np.mgrid[:128, :128]
q = 0.16 * np.hypot(y - 52.3, x - 71.6)  # 1/nm
frame = 3 * np.exp(-q / 3)
for spacing, strength in [(0.2355, 10), (0.2039, 5), (0.1442, 4), (0.1230, 5), (0.1177, 2)]:
    frame += strength * np.exp(-(((q - 1 / spacing) / 0.12) ** 2))  # d in nm
counts = np.random.default_rng(0).poisson(0.3 * frame, (12, 16, 128, 128))
scan = da.from_array(counts.astype("uint16"), chunks=(4, 16, 128, 128))
axes = [ud.Axis(name=name) for name in "yx"]
axes += [ud.Axis(name=name, unit="1/nm", scale=0.16) for name in ("ky", "kx")]

total = ud.run_udf(scan, SumUDF())["intensity"].compute()
cy, cx = find_center(total)
profiles = ud.run_udf(
    scan,
    {
        "middle of the frame": RadialProfileUDF(r="9 1/nm"),
        "center that was found": RadialProfileUDF(cy=cy, cx=cx, r="9 1/nm"),
    },
    axes=axes,
)

figure, (left, right) = plt.subplots(1, 2, figsize=(8.6, 3.8), layout="constrained")
left.imshow(np.sqrt(total), cmap="inferno")
left.plot(64, 64, "x", ms=12, mew=2, color="white", label="middle of the frame")
left.plot(cx, cy, "+", ms=14, mew=2, color="deepskyblue", label="center that was found")
left.set(title="Sum of 192 frames", xlabel="kx (px)", ylabel="ky (px)")
left.legend(loc="lower left", labelcolor="white", facecolor="black")
for (name, result), color in zip(profiles.items(), ("gray", "deepskyblue"), strict=True):
    (radius,) = result.extra_axes["intensity"]
    curve = result["intensity"].mean(axis=(0, 1)).compute()
    right.plot(radius.positions(len(curve)), curve, color=color, label=name)
right.set(title="Radial profile", xlabel="radius (1/nm)", ylabel="counts per pixel", xlim=(2, 9))
right.legend()
