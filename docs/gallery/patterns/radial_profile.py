"""
Radial profiles: the crystalline part of a film
===============================================

An amorphous film crystallizes from the top to the bottom. Its patterns change from broad halos to
sharp rings. ``RadialProfileUDF`` gives one profile for each scan position, with an axis in 1/nm,
and the panels show their mean and how they change along y.

See also: :doc:`Centers and ellipses </user-guide/analysis/centers>`,
:class:`~udfdask.udfs.RadialProfileUDF`, :func:`~udfdask.plotting.draw`.
"""

from dataclasses import replace

import dask.array as da
import numpy as np

import udfdask as ud
from udfdask.masks import polar_map
from udfdask.plotting import Panel, draw
from udfdask.udfs import RadialProfileUDF

y, x = np.mgrid[:48, :64]
crystalline = 1 / (1 + np.exp((24 - y + 6 * np.sin(x / 8)) / 3))[..., None, None]
q = 0.2 * polar_map(centerX=32, centerY=32, imageSizeX=64, imageSizeY=64)[0]  # 1/nm
halos = 12 * np.exp(-q) + 3 * np.exp(-(((q - 3.0) / 0.7) ** 2))
rings = 12 * np.exp(-q)
for spacing, strength in [(0.313, 6), (0.192, 4), (0.164, 3)]:  # silicon, d in nm
    rings += strength * np.exp(-(((q - 1 / spacing) / 0.15) ** 2))
frames = crystalline * rings + (1 - crystalline) * halos
counts = np.random.default_rng(0).poisson(frames).astype("uint16")
scan = da.from_array(counts, chunks=(12, 64, 64, 64))

axes = [ud.Axis(name=name, unit="nm", scale=4) for name in "yx"]
axes += [ud.Axis(name=name, unit="1/nm", scale=0.2) for name in ("ky", "kx")]
udf = RadialProfileUDF(ri="1 1/nm", r="6.2 1/nm", n_bins=40)
profile = ud.run_udf(scan, udf, axes=axes, unit="counts").compute()

along_y, _, radius = profile.axes["intensity"]
curves = profile["intensity"]
panels = [
    Panel(title="mean over the scan", values=curves.mean(axis=(0, 1)), axes=(radius,)),
    Panel(title="mean over x", values=curves.mean(axis=1), axes=(along_y, radius)),
]
figure = draw(
    [replace(panel, label="counts", log=True) for panel in panels],
    title="Radial profiles of 3072 frames",
)
