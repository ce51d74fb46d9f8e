"""Fields of (y, x) vectors over a scan: centers of mass, fitted planes, divergence and curl."""

from __future__ import annotations

from typing import Any

import numpy as np

from udfdask.base.types import AnyArray


def centers(moments: AnyArray, origins: Any) -> tuple[AnyArray, AnyArray]:
    """Return centers of mass (y, x), and their shifts from `origins`, both of shape (n, 2).

    `moments` holds sum(I), sum(y * I) and sum(x * I), shape (n, 3). There is one origin (y, x), or
    one for each row, shape (n, 2). If sum(I) is 0, the center is the origin.
    """
    total = moments[:, :1]
    com = np.empty((len(moments), 2))
    com[:] = origins
    np.divide(moments[:, 1:], total, out=com, where=total != 0)
    return com, com - origins


def fit_plane(positions: AnyArray, field: AnyArray, order: int) -> AnyArray:
    """Return the least-squares plane of order 0 or 1 through a field, shape (3, 2).

    Vectors that are not finite are ignored. If there are no others, the fitted terms are NaN.
    """
    regression = np.zeros((3, 2))
    finite = np.isfinite(field).all(axis=1)
    values = field[finite]
    if not len(values):
        regression[: 3 if order else 1] = np.nan
    elif order:
        columns = np.column_stack([np.ones(len(values)), positions[finite]])
        regression[:] = np.linalg.lstsq(columns, values, rcond=None)[0]
    else:
        regression[0] = values.mean(axis=0)
    return regression


def divergence(
    field_y: AnyArray, field_x: AnyArray, steps: tuple[float, float] = (1.0, 1.0)
) -> AnyArray:
    """Return the divergence of a field over a 2-D scan: ``d fy / dy + d fx / dx``.

    `steps` are the distances between positions along y and x.
    """
    return np.asarray(
        np.gradient(field_y, steps[0], axis=0) + np.gradient(field_x, steps[1], axis=1)
    )


def curl(field_y: AnyArray, field_x: AnyArray, steps: tuple[float, float] = (1.0, 1.0)) -> AnyArray:
    """Return the curl of a field over a 2-D scan: ``d fy / dx - d fx / dy``.

    `steps` are the distances between positions along y and x.
    """
    return np.asarray(
        np.gradient(field_y, steps[1], axis=1) - np.gradient(field_x, steps[0], axis=0)
    )
