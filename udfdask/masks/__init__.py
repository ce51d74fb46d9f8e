"""Make masks of a frame or a spectrum, and cut stacks of masks to tiles.

X parameters come before Y parameters, and all are in pixels; the arrays have the shape
`(imageSizeY, imageSizeX)`.
"""

from typing import TYPE_CHECKING

from udfdask.base.lazy_names import lazy_names

if TYPE_CHECKING:
    from udfdask.masks.bins import radial_bins as radial_bins
    from udfdask.masks.container import MaskContainer as MaskContainer
    from udfdask.masks.disks import circular as circular
    from udfdask.masks.disks import gradient_x as gradient_x
    from udfdask.masks.disks import gradient_y as gradient_y
    from udfdask.masks.disks import radial_gradient as radial_gradient
    from udfdask.masks.disks import rectangular as rectangular
    from udfdask.masks.disks import ring as ring
    from udfdask.masks.disks import window as window
    from udfdask.masks.polar import bounding_radius as bounding_radius
    from udfdask.masks.polar import polar_map as polar_map
    from udfdask.masks.template_stacks import (
        sparse_circular_multi_stack as sparse_circular_multi_stack,
    )
    from udfdask.masks.template_stacks import (
        sparse_template_multi_stack as sparse_template_multi_stack,
    )
    from udfdask.masks.templates import DiskTemplate as DiskTemplate
    from udfdask.masks.templates import background_subtraction as background_subtraction
    from udfdask.masks.templates import balance as balance
    from udfdask.masks.templates import (
        radial_gradient_background_subtraction as radial_gradient_background_subtraction,
    )

if not TYPE_CHECKING:  # a type checker would accept any name
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "bins": "radial_bins",
            "disks": ("circular gradient_x gradient_y radial_gradient rectangular ring window"),
            "polar": "bounding_radius polar_map",
            "container": "MaskContainer",
            "template_stacks": "sparse_circular_multi_stack sparse_template_multi_stack",
            "templates": (
                "DiskTemplate background_subtraction balance radial_gradient_background_subtraction"
            ),
        },
    )
    __all__ = list(__dir__())
