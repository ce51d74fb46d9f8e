"""Convert between sparse and dense arrays with the optional package `sparseconverter`."""

from __future__ import annotations

from typing import Any

from udfdask.errors import missing_package


def converter(purpose: str) -> Any:
    """Return the package `sparseconverter`; an error says that `purpose` needs it."""
    # not imported at the top: it loads SciPy and numba
    try:
        import sparseconverter
    except ImportError as error:
        raise missing_package(
            error.name or "sparseconverter", purpose=purpose, extra="sparse"
        ) from None
    return sparseconverter


def converted(array: Any, name: str) -> Any:
    """Convert an array to the backend with this name; matrices flatten the signal."""
    if not array.dtype.isnative:  # neither sparse nor SciPy computes in another byte order
        array = array.astype(array.dtype.newbyteorder("="))
    return converter(f"converting to {name}").for_backend(array, name)
