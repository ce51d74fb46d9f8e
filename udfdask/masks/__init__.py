"""Make masks of a frame or a spectrum, and cut stacks of masks to tiles.

X parameters come before Y parameters, and all are in pixels; the arrays have the shape
`(imageSizeY, imageSizeX)`.
"""

from typing import TYPE_CHECKING

from udfdask.lazy_names import lazy_names

if TYPE_CHECKING:
    from udfdask.masks.background import (
        background_subtraction,
        balance,
        radial_gradient_background_subtraction,
    )
    from udfdask.masks.bins import radial_bins
    from udfdask.masks.disks import circular, rectangular, ring, window
    from udfdask.masks.gradients import gradient_x, gradient_y, radial_gradient
    from udfdask.masks.polar import bounding_radius, polar_map
    from udfdask.masks.stacks.container import MaskContainer
    from udfdask.masks.templates import (
        DiskTemplate,
        sparse_circular_multi_stack,
        sparse_template_multi_stack,
    )

__all__ = [
    "DiskTemplate",
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

if not TYPE_CHECKING:  # a type checker would accept any name
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "background": "background_subtraction balance radial_gradient_background_subtraction",
            "bins": "radial_bins",
            "disks": "circular rectangular ring window",
            "gradients": "gradient_x gradient_y radial_gradient",
            "polar": "bounding_radius polar_map",
            "stacks.container": "MaskContainer",
            "templates": "DiskTemplate sparse_circular_multi_stack sparse_template_multi_stack",
        },
    )
