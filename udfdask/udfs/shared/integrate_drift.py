"""Shifts of all frames from the shifts between neighboring frames."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.types import AnyArray

LEAST = 1e-9
"""Smallest weight, as a part of the largest, that counts."""


def integrate_drift(shifts: Any, *, weights: Any = None) -> AnyArray:
    """Add up the shifts between neighboring frames to the shift of each frame.

    Parameters
    ----------
    shifts : array-like of numbers, shape (*nav, nav dims, sig dims)
        Shift of each frame relative to its predecessor along each navigation axis, in pixels: the
        result `shifts` of a `ScanDriftUDF`. Shifts that contain NaN are not used. A lazy array is
        computed.
    weights : array-like of numbers, shape (*nav, nav dims), optional
        How reliable each shift is, such as the result `correlation` of a `ScanDriftUDF`: shifts
        with a weight of 0 or less, NaN, or less than 1e-9 of the largest are not used. By default,
        all count the same.

    Returns
    -------
    numpy.ndarray, shape (*nav, sig dims), float64
        Shift of each frame, in pixels, relative to the first frame: what ``descan=`` takes and
        removes. Frames that no chain of shifts connects with the first one are NaN. If the first
        frame has no shift itself, it is relative to the first frame of the largest connected part.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If an argument does not hold real numbers or has a wrong shape, or weights are infinite.

    See Also
    --------
    ScanDriftUDF : Measures the shifts.

    Notes
    -----
    In a scan of two axes, many ways lead to each frame, and measured shifts differ between them.
    The result minimizes the sum of the squared differences to all of them. Errors add up over the
    scan: the drift is smooth, but its large parts are less certain than those of a `CoMUDF`, which
    measures each frame for itself.

    Examples
    --------
    >>> import numpy as np
    >>> from udfdask.udfs import integrate_drift
    >>> shifts = np.array([[[np.nan, np.nan]], [[0.0, 1.0]], [[0.5, 2.0]]])
    >>> integrate_drift(shifts)
    array([[0. , 0. ],
           [0. , 1. ],
           [0.5, 3. ]])
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components
    from scipy.sparse.linalg import splu

    found = _numbers("shifts", shifts)
    *nav, dims, sig_dims = found.shape if found.ndim > 1 else (0, 0)
    if not nav or dims != len(nav):
        raise ArgumentValueError(
            f"shifts must have the shape (*nav, nav dims, sig dims), not {found.shape}: pass the "
            "result 'shifts' of a ScanDriftUDF"
        )
    usable = np.isfinite(found).all(axis=-1)
    strength = np.ones(usable.shape) if weights is None else _numbers("weights", weights)
    if strength.shape != usable.shape:
        raise ArgumentValueError(f"weights have the shape {strength.shape}, not {usable.shape}")
    if np.isinf(strength).any():
        raise ArgumentValueError("weights are infinite for some shifts: pass finite numbers")
    # the least squares cannot tell weights of more digits apart
    strength = strength / max(float(np.nanmax(strength, initial=0)), np.finfo(np.float64).tiny)
    n = math.prod(nav)
    drift = np.full((n, sig_dims), np.nan)
    # a shift links the frames `first` and `second`; those of one axis come after each other
    links = np.moveaxis(usable & (strength > LEAST), -1, 0) & (np.indices(nav) > 0)
    axis, second = np.nonzero(links.reshape(dims, n))
    first = second - np.array([math.prod(nav[k + 1 :]) for k in range(dims)])[axis]
    if not len(first):
        drift[:1] = 0
        return drift.reshape((*nav, sig_dims))
    graph = coo_array((np.ones(len(first)), (first, second)), shape=(n, n))
    _, part = connected_components(graph, directed=False)
    sizes = np.bincount(part)
    chosen = part[0] if sizes[part[0]] > 1 else int(sizes.argmax())
    inside = np.flatnonzero(part == chosen)
    kept = part[first] == chosen
    a, b = np.searchsorted(inside, first[kept]), np.searchsorted(inside, second[kept])
    size = strength.reshape(n, dims)[second, axis][kept]
    step = found.reshape(n, dims, sig_dims)[second, axis][kept] * size[:, np.newaxis]
    # normal equations of the least squares, without the first frame, which does not move
    entries = np.concatenate([size, size, -size, -size])
    places = np.concatenate([a, b, a, b]), np.concatenate([a, b, b, a])
    matrix = coo_array((entries, places), shape=(len(inside), len(inside))).tocsc()
    target = np.zeros((len(inside), sig_dims))
    np.add.at(target, b, step)
    np.add.at(target, a, -step)
    drift[inside[0]] = 0
    drift[inside[1:]] = splu(matrix[1:, 1:].tocsc()).solve(target[1:])
    return drift.reshape((*nav, sig_dims))


def _numbers(name: str, values: Any) -> AnyArray:
    found = np.asarray(values.compute() if hasattr(values, "__dask_graph__") else values)
    if found.dtype.kind not in "biuf":
        raise ArgumentTypeError(f"{name} must be an array of real numbers, not of {found.dtype}")
    return found.astype(np.float64)
