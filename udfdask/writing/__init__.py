"""Write files and stores completely or not at all, and never over a user's data."""

from udfdask.writing.replacing import replacing
from udfdask.writing.targets import (
    HDF5,
    NPY,
    NPZ,
    PDF,
    PNG,
    SVG,
    TIFF,
    ZARR,
    Kind,
    Target,
    check_apart,
    check_target,
)

__all__ = [
    "HDF5",
    "NPY",
    "NPZ",
    "PDF",
    "PNG",
    "SVG",
    "TIFF",
    "ZARR",
    "Kind",
    "Target",
    "check_apart",
    "check_target",
    "replacing",
]
