"""
Grain boundaries from the similarity of neighbors
=================================================

Inside a grain, neighboring frames have the same pattern. At a boundary they differ.
``NeighborSimilarityUDF`` compares each frame with the frames around it. The mean over its neighbors
is a map of the boundaries: nothing has to be known about the crystal.

See also: :doc:`Neighborhoods </user-guide/writing/neighborhoods>`,
:class:`~udfdask.udfs.NeighborSimilarityUDF`.
"""

import dask.array as da
import numpy as np

import udfdask as ud
from udfdask.masks import polar_map
from udfdask.plotting import Panel, draw
from udfdask.udfs import NeighborSimilarityUDF, VirtualDetectorUDF

# Twenty-four grains. Each has six reflections, turned by an angle of its own.
rng = np.random.default_rng(8)
centers, turns = rng.uniform(0, (64, 80), (24, 2)), rng.permutation(24) * np.pi / 72
y, x = np.mgrid[:64, :80]
grain = np.hypot(y[..., None] - centers[:, 0], x[..., None] - centers[:, 1]).argmin(axis=-1)
radius, angle = polar_map(centerX=24, centerY=24, imageSizeX=48, imageSizeY=48)
ring = np.exp(-(((radius - 15) / 1.5) ** 2))
spots = np.exp(9 * (np.cos(6 * (angle - turns[:, None, None])) - 1))  # a pattern for each grain
patterns = 0.2 + 20 * np.exp(-((radius / 3) ** 2)) + 4 * ring * spots
scan = da.from_array(rng.poisson(patterns[grain]).astype("uint8"), chunks=(16, 40, 48, 48))

# The direct beam is the same everywhere, so the mask leaves it out.
similarity = NeighborSimilarityUDF("rectangular", mask=radius > 8)
bright_field = VirtualDetectorUDF("disk", r=8)
neighbors, image = ud.compute(*ud.run_udf(scan, [similarity, bright_field]))

nm = tuple(ud.Axis(name=name, unit="nm", scale=2) for name in "yx")
panels = [
    Panel(title="Similarity to 8 neighbors", values=neighbors["mean"], axes=nm, label="mean"),
    Panel(title="Bright field", values=image["intensity"], axes=nm, label="counts"),
]
figure = draw(panels)
