"""The package `sparseconverter`, which converts between sparse and dense arrays of all kinds."""

from __future__ import annotations

from typing import Any

from udfdask.errors import missing_package


def converter(purpose: str) -> Any:
    """Return the package that converts between backends, which `purpose` takes."""
    # not at the top: it loads SciPy and numba
    try:
        import sparseconverter
    except ImportError as error:
        raise missing_package(
            error.name or "sparseconverter", purpose=purpose, extra="sparse"
        ) from None
    return sparseconverter


def converted(array: Any, name: str) -> Any:
    """Return an array in the backend of this name; it is flattened for matrices."""
    if not array.dtype.isnative:  # sparse has no other byte order, nor have kernels of SciPy
        array = array.astype(array.dtype.newbyteorder("="))
    return converter(f"converting to {name}").for_backend(array, name)
