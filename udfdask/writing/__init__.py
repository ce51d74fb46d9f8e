"""Write files and stores completely or not at all, and never over a user's data."""

from udfdask.writing.replacing import replacing
from udfdask.writing.targets import NPY, NPZ, PNG, ZARR, Kind, Target, check_apart, check_target

__all__ = [
    "NPY",
    "NPZ",
    "PNG",
    "ZARR",
    "Kind",
    "Target",
    "check_apart",
    "check_target",
    "replacing",
]
