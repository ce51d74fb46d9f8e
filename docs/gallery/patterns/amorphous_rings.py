"""
Amorphous rings: their ellipse and the variance V(k)
====================================================

The lenses stretch the patterns of an amorphous film by 8 %. ``fit_ellipse`` finds the ellipse of
the ring. With it, the ring of the unwrapped frames is straight, and the radial profile shows the
shoulder of the ring. The variance V(k) from frame to frame shows where ordered regions scatter.

See also: :doc:`Rings </user-guide/analysis/rings>`, :func:`~udfdask.analyses.fit_ellipse`,
:class:`~udfdask.analyses.PolarMeanUDF`, :class:`~udfdask.analyses.RadialVarianceUDF`.
"""

import dask.array as da
import numpy as np

import udfdask as ud
from udfdask.analyses import PolarMeanUDF, RadialVarianceUDF, fit_ellipse
from udfdask.masks.polar import distance
from udfdask.plotting import Panel, draw
from udfdask.udfs import SumUDF


def rings(q, order):
    """Return the intensity at q, in 1/nm; the order makes a ring and its shoulder stronger."""
    ring, shoulder = np.exp(-(((q - 3.3) / 0.35) ** 2)), np.exp(-(((q - 4.2) / 0.15) ** 2))
    return 20 * np.exp(-q / 2) + (14 + 6 * order) * ring + (5 + 4 * order) * shoulder


d = distance(61.8, 66.4, 128, 128, stretch=1.08, stretch_angle=35)
rng = np.random.default_rng(0)
order = rng.normal(size=(12, 16, 1, 1)).clip(-1, 2)
scan = da.from_array(rng.poisson(rings(0.09 * d, order)).astype("uint16"), chunks=(4, 16, 128, 128))

axes = [ud.Axis(name=name) for name in "yx"]
axes += [ud.Axis(name=name, unit="1/nm", scale=0.09) for name in ("ky", "kx")]
ellipse, residual = fit_ellipse(ud.run_udf(scan, SumUDF())["intensity"], r_range=(27, 55))
area = {"ri": "2 1/nm", "r": "5.2 1/nm", "n_bins": 48}
places = {"circles": {"center": ellipse.center}, "ellipses": ellipse._asdict()}
udfs = [
    udf(**place, **area) for place in places.values() for udf in (PolarMeanUDF, RadialVarianceUDF)
]
polar, v, polar_2, v_2 = ud.compute(*ud.run_udf(scan, udfs, axes=axes, unit="counts"))

radius, angle = polar.extra_axes["intensity"]
q = radius.positions(48)
true_mean = rings(q, order.mean())
true_variance = ((rings(q, 1) - rings(q, 0)) * order.std() / true_mean) ** 2
names = ud.Axis(name="rings", labels=("truth", *places))
means = np.stack([true_mean, v["mean"], v_2["mean"]], axis=1)
variances = [true_variance, v["variance_of_means"], v_2["variance_of_means"]]
unwrapped = {"axes": (radius, angle), "style": "pattern", "label": "counts"}
curves = {"axes": (radius, names), "style": "lines"}
figure = draw(
    [
        Panel(title="unwrapped along circles", values=polar["intensity"], **unwrapped),
        Panel(title="unwrapped along ellipses", values=polar_2["intensity"], **unwrapped),
        Panel(title="radial profile", values=means, label="counts", **curves),
        Panel(title="variance of the means, V(k)", values=np.stack(variances, axis=1), **curves),
    ],
    title=f"Stretch {ellipse.stretch:.3f} at {ellipse.stretch_angle:.1f} degrees (truth: 1.08, 35)",
)
