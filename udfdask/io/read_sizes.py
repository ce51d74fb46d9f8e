"""Check shapes that a user gives for the contents of a file."""

from __future__ import annotations

import operator
from collections.abc import Sequence

from udfdask.errors import ArgumentTypeError, ArgumentValueError


def sizes(shape: int | Sequence[int], *, name: str) -> tuple[int, ...]:
    """Return the user's shape as a tuple of positive integers."""
    try:
        given = shape if isinstance(shape, Sequence) else (shape,)
        if any(isinstance(size, bool) for size in given):
            raise TypeError("a size cannot be a bool")  # noqa: TRY301  # becomes the cause below
        checked = tuple(operator.index(size) for size in given)
    except TypeError as error:
        raise ArgumentTypeError(
            f"{name} must be integers, got {shape!r}: pass for example {name}=(64, 64)"
        ) from error
    if any(size < 1 for size in checked):
        raise ArgumentValueError(
            f"{name} must have positive sizes, got {shape!r}: pass for example {name}=(64, 64)"
        )
    return checked
