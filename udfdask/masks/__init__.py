"""Masks of a frame or a spectrum: functions that make them, and a container that cuts stacks.

Parameters say X before Y and are in pixels; the arrays are `(imageSizeY, imageSizeX)`.
"""

from udfdask.masks.background import (
    background_subtraction,
    balance,
    radial_gradient_background_subtraction,
)
from udfdask.masks.bins import radial_bins
from udfdask.masks.discs import circular, ring
from udfdask.masks.gradients import gradient_x, gradient_y, radial_gradient
from udfdask.masks.polar import bounding_radius, polar_map
from udfdask.masks.rectangles import rectangular, window
from udfdask.masks.stacks.container import MaskContainer
from udfdask.masks.stamps import sparse_circular_multi_stack, sparse_template_multi_stack
from udfdask.masks.templates import DiscTemplate

__all__ = [
    "DiscTemplate",
    "MaskContainer",
    "background_subtraction",
    "balance",
    "bounding_radius",
    "circular",
    "gradient_x",
    "gradient_y",
    "polar_map",
    "radial_bins",
    "radial_gradient",
    "radial_gradient_background_subtraction",
    "rectangular",
    "ring",
    "sparse_circular_multi_stack",
    "sparse_template_multi_stack",
    "window",
]
