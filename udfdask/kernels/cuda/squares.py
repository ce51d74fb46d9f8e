"""Squared absolute values."""

from __future__ import annotations

from typing import Any


def squared(values: Any) -> Any:
    """Return squared absolute values, real."""
    return values.real**2 + values.imag**2 if values.dtype.kind == "c" else values * values
