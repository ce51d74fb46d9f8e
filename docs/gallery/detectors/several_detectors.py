"""
Several detectors in one pass
=============================

One disk and two rings make three images of the same particles. ``ApplyMasksUDF`` takes all masks
together, so each frame is read once. The particles are dark in bright field and bright in dark
field, because they scatter electrons from the disk to the rings.

See also: :doc:`Masks </user-guide/analysis/masks>`, :class:`~udfdask.udfs.ApplyMasksUDF`,
:func:`~udfdask.masks.polar_map`.
"""

import dask.array as da
import numpy as np

import udfdask as ud
from udfdask.masks import polar_map
from udfdask.plotting import Panel, draw
from udfdask.udfs import ApplyMasksUDF, SumUDF

# Particles on a thin film. They scatter a part of the beam to larger angles.
y, x = np.mgrid[:64, :80]
thickness = np.full(y.shape, 0.05)
for py, px, radius in [(16, 18, 7), (40, 30, 11), (14, 50, 9), (44, 62, 8), (30, 71, 4)]:
    thickness += 0.6 * np.sqrt(np.clip(1 - ((y - py) ** 2 + (x - px) ** 2) / radius**2, 0, 1))
angle = 0.8 * polar_map(centerX=24, centerY=24, imageSizeX=48, imageSizeY=48)[0]  # mrad
direct = 40 / (1 + np.exp(4 * (angle - 4)))
scattered = 6 * np.exp(-((angle / 9) ** 2))
frames = direct * (1 - thickness[..., None, None]) + scattered * thickness[..., None, None]
counts = np.random.default_rng(0).poisson(frames).astype("uint16")
scan = da.from_array(counts, chunks=(16, 80, 48, 48))

masks = {
    "BF, 0 to 4 mrad": angle <= 4,
    "LAADF, 6 to 10 mrad": (angle > 6) & (angle <= 10),
    "HAADF, 11 to 18 mrad": (angle > 11) & (angle <= 18),
}
images, total = ud.compute(*ud.run_udf(scan, [ApplyMasksUDF(masks), SumUDF()]))

nm = [ud.Axis(name=name, unit="nm", scale=0.5) for name in "yx"]
mrad = [ud.Axis(name=name, unit="mrad", scale=0.8, offset=-19.2) for name in ("ky", "kx")]
pattern = total["intensity"] / scan.shape[0] / scan.shape[1]
panels = [
    Panel(
        title="Mean pattern",
        values=pattern,
        axes=tuple(mrad),
        style="pattern",
        log=True,
        label="counts",
        outlines=masks,
    )
]
panels += [Panel(title=m, values=images[m], axes=tuple(nm), label="counts") for m in masks]
figure = draw(panels)
