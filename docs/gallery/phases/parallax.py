"""
Parallax: a sharp image from a defocused scan
=============================================

Out of focus, each pixel of the bright field has its own image of the object, shifted by the defocus
times its angle: in their sum, the object is blurred. ``parallax`` measures the shifts, which gives
the defocus and the rotation of the detector, and adds the images without them, on a finer grid.

See also: :doc:`Phases </user-guide/analysis/phase>`, :func:`~udfdask.analyses.parallax`,
:class:`~udfdask.analyses.ParallaxUDF`.
"""

import matplotlib.pyplot as plt

from udfdask.analyses import parallax
from udfdask.demo import PhaseObject

# A simulated scan 25 nm below focus, with 1000 electrons per position, and its object.
scan = PhaseObject(nav_shape=(32, 48), step=0.1, sig_shape=(32, 32), pixel=2, defocus=25,
                   scan_rotation=20, dose=1000)  # fmt: skip
thin = PhaseObject(nav_shape=(128, 192), step=0.025)

found = parallax(scan, "20 mrad", upsampling=4, voltage="300 kV").compute()

figure, panels = plt.subplots(1, 3, figsize=(12, 3.4), layout="constrained")
titles = "Parallax: phase (rad)", "Phase of the object (rad)"
for panel, image, title in zip(panels, (found["phase"], thin.phase), titles, strict=False):
    drawn = panel.imshow(image, cmap="gray", extent=(0, 4.8, 3.2, 0))
    panel.set(title=title, xlabel="x (nm)", ylabel="y (nm)")
    figure.colorbar(drawn, shrink=0.8)
y, x, dy, dx = *found["angles"].T, *found["shifts"].T
drawn = panels[2].quiver(x, y, dx, dy, angles="xy", pivot="middle")
panels[2].quiverkey(drawn, 0.85, 0.06, 0.5, "0.5 nm")
title = f"Shifts: {found['defocus']:.1f} nm, {found['scan_rotation']:.1f}°"
panels[2].set(title=title, xlabel="kx (mrad)", ylabel="ky (mrad)", aspect="equal", ylim=(20, -20))
