"""Counts CUDA devices without CuPy."""

from __future__ import annotations

from typing import Any


def count_devices() -> int:
    """Return the number of CUDA devices that this process may use; raise what numba raises."""
    from numba.cuda.cudadrv.driver import driver

    counted: Any = driver.get_device_count  # makes no context on a device
    return int(counted())
