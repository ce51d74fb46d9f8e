"""
Parallax: a sharp image from a defocused scan
=============================================

Below focus, each pixel of the bright field has its own image of the object, shifted by the defocus
times its angle. ``parallax`` measures the shifts, from which it knows the defocus, and adds the
images without them, on a grid finer than the scan.

See also: :doc:`Phases </user-guide/analysis/phase>`, :func:`~udfdask.analyses.parallax`,
:class:`~udfdask.analyses.ParallaxUDF`.
"""

import matplotlib.pyplot as plt

import udfdask as ud
from udfdask.analyses import parallax
from udfdask.demo import PhaseObject
from udfdask.udfs import VirtualDetectorUDF

small = {"nav_shape": (32, 48), "sig_shape": (32, 32), "pixel": 2, "step": 0.1}
thin = PhaseObject(**small, defocus=25, scan_rotation=20, dose=300)
finer = PhaseObject(nav_shape=(128, 192), step=0.025)

found = parallax(thin, "20 mrad", upsampling=4, voltage="300 kV").compute()
disk = ud.run_udf(thin, VirtualDetectorUDF("disk", r="20 mrad"))["intensity"].compute()

figure, axes = plt.subplots(2, 2, figsize=(9, 6.6), layout="constrained")
titles = ("Bright field", "Parallax: phase", "Phase of the object")
panels = zip(axes.flat, (disk, found["phase"], finer.phase), titles, strict=False)
for panel, image, title in panels:
    drawn = panel.imshow(image, cmap="gray", extent=(0, 4.8, 3.2, 0))
    panel.set(title=title, xlabel="x (nm)", ylabel="y (nm)")
    figure.colorbar(drawn, label="electrons" if image is disk else "rad", shrink=0.8)
angles, shifts = found["angles"].T, found["shifts"].T
arrows = axes[1, 1].quiver(*angles[::-1], *shifts[::-1], angles="xy", pivot="middle")
axes[1, 1].set(
    title=f"Shifts: {found['defocus']:.1f} nm, {found['scan_rotation']:.1f}°",
    xlabel="kx (mrad)",
    ylabel="ky (mrad)",
    aspect="equal",
)
axes[1, 1].invert_yaxis()
