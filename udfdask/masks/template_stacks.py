"""Stacks of masks that are copies of a template at other places."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from udfdask.base.types import AnyArray
from udfdask.errors import ArgumentValueError
from udfdask.masks import checks
from udfdask.masks.disks import circular


def sparse_template_multi_stack(
    mask_index: Any, offsetX: Any, offsetY: Any, template: Any, imageSizeX: int, imageSizeY: int
) -> Any:
    """Return a sparse stack of masks with copies of a template at many positions.

    Parameters
    ----------
    mask_index : sequence of int, length n
        Number of the mask that gets each copy. Several copies can share a mask; where they
        overlap, their values are added (combined with `or` for a boolean template).
    offsetX, offsetY : sequence of float, length n
        Position in the frame of the first pixel of each copy, in pixels, rounded.
    template : numpy.ndarray, shape (height, width)
        The template.
    imageSizeX, imageSizeY : int
        Size of the frame, in pixels; parts outside the frame are cut off.

    Returns
    -------
    sparse.COO, shape (max(mask_index) + 1, imageSizeY, imageSizeX), dtype of `template`
        The masks.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If a number is invalid, the sequences are empty or differ in length, or `template` does not
        have two axes.
    ImportError
        If the package `sparse` is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> from udfdask.masks import sparse_template_multi_stack
    >>> stack = sparse_template_multi_stack(
    ...     mask_index=[0, 1], offsetX=[0, 3], offsetY=[1, 0],
    ...     template=np.ones((2, 2), dtype="uint8"), imageSizeX=4, imageSizeY=3,
    ... )
    >>> stack.shape, stack.nnz
    ((2, 3, 4), 6)
    """
    sparse = checks.needs_sparse("sparse_template_multi_stack")
    nx, ny = checks.size("imageSizeX", imageSizeX), checks.size("imageSizeY", imageSizeY)
    stamp = np.asarray(template)
    height, width = stamp.shape
    masks = _positions("mask_index", mask_index)
    left, top = _positions("offsetX", offsetX), _positions("offsetY", offsetY)
    if not len(masks) == len(left) == len(top) or not len(masks) or masks.min() < 0:
        raise ArgumentValueError(
            "mask_index, offsetX and offsetY must have the same length, at least 1, and mask_index "
            "no negative numbers"
        )
    k, y, x = (n[:, np.newaxis, np.newaxis] for n in (masks, top, left))
    y, x = y + np.arange(height)[:, np.newaxis], x + np.arange(width)
    k, y, x, values = np.broadcast_arrays(k, y, x, stamp)
    inside = (y >= 0) & (y < ny) & (x >= 0) & (x < nx)
    return sparse.COO(
        coords=np.stack([k[inside], y[inside], x[inside]]),
        data=values[inside],
        shape=(int(masks.max()) + 1, ny, nx),
    )


def sparse_circular_multi_stack(
    mask_index: Any, centerX: Any, centerY: Any, imageSizeX: int, imageSizeY: int, radius: float
) -> Any:
    """Return a sparse stack of masks with disks at many positions.

    Parameters
    ----------
    mask_index, centerX, centerY : sequence, length n
        Number of the mask that gets each disk, and the centers, in pixels, rounded.
    imageSizeX, imageSizeY : int
        Size of the frame, in pixels; parts outside the frame are cut off.
    radius : float
        Radius of all disks, in pixels, 0 or more.

    Returns
    -------
    sparse.COO, shape (max(mask_index) + 1, imageSizeY, imageSizeX), bool
        The masks; each disk is made by `circular`.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If a number is invalid, or the sequences are empty or differ in length.
    ImportError
        If the package `sparse` is not installed.

    Examples
    --------
    >>> from udfdask.masks import sparse_circular_multi_stack
    >>> stack = sparse_circular_multi_stack(range(2), [3, 0], [2, 0], 8, 6, radius=1)
    >>> print(stack.shape, stack.sum(axis=(1, 2)).todense())
    (2, 6, 8) [5 3]
    """
    reach = math.ceil(checks.radius("radius", radius))
    extent = 2 * reach + 1
    return sparse_template_multi_stack(
        mask_index=mask_index,
        offsetX=_positions("centerX", centerX) - reach,
        offsetY=_positions("centerY", centerY) - reach,
        template=circular(reach, reach, extent, extent, radius),
        imageSizeX=imageSizeX,
        imageSizeY=imageSizeY,
    )


def _positions(name: str, values: Any) -> AnyArray:
    """Return a one-dimensional array of whole numbers, rounded to the nearest."""
    array: AnyArray = np.asarray(values).reshape(-1)
    if array.size and (array.dtype.kind not in "iuf" or not np.isfinite(array).all()):
        raise ArgumentValueError(f"{name} must contain finite numbers, not {values!r:.80}")
    rounded: AnyArray = np.rint(array).astype(np.int64)
    return rounded


def shifted_templates(template: AnyArray, steps: int) -> AnyArray:
    """Return copies of a template at all positions of a window with `steps` more pixels per side.

    The stack has the shape ((2 * steps + 1)**2, height + 2 * steps, width + 2 * steps) and the
    dtype of the template. Its masks are in C order of the shifts, starting at (-steps, -steps).
    """
    height, width = template.shape
    side = 2 * steps + 1
    window = (height + 2 * steps, width + 2 * steps)
    stack = np.zeros((side, side, *window), dtype=template.dtype)
    for y in range(side):
        for x in range(side):
            stack[y, x, y : y + height, x : x + width] = template
    return stack.reshape((side**2, *window))
