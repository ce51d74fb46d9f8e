"""Read a size in bytes that a user has given as a number or as a text."""

from __future__ import annotations

from typing import Any

import numpy as np
from dask.utils import parse_bytes

from udfdask.errors import ArgumentTypeError, ArgumentValueError


def parse_size(value: Any, name: str, example: str) -> int:
    """Return a number of bytes, at least 1; `name` is that of the option, for messages."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer, str)):
        raise ArgumentTypeError(
            f"{name} must be a number of bytes or a text such as {example!r}, not {value!r}"
        )
    no_size = (
        f"{name}={value!r} is not a size: write a number of bytes or a text such as {example!r}"
    )
    if isinstance(value, str) and not value.strip():  # dask reads it as 1 byte
        raise ArgumentValueError(no_size)
    try:
        size = parse_bytes(value if isinstance(value, str) else int(value))
    except (ValueError, OverflowError) as error:
        raise ArgumentValueError(no_size) from error
    if size < 1:
        raise ArgumentValueError(f"{name} must be at least 1 byte, not {value!r}")
    return int(size)
