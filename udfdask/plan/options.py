"""The options of a run, as one value: their names and defaults, and how sizes are written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from dask.utils import parse_bytes

from udfdask.advice import ARRAY, Door
from udfdask.corrections import CorrectionSet
from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.geometry.axes import Axis
from udfdask.geometry.chunk_grid import BoolArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of a run as the user gave them; `run_udf` describes them."""

    sig_dims: int = 2
    roi: Any = None
    present: BoolArray | None = None
    """Mask of the scan positions that have a frame, shape nav; None for all."""
    axes: Sequence[Axis] | None = None
    unit: str | None = None
    corrections: CorrectionSet | None = None
    descan: Any = None
    backends: Any = None
    split_every: int | bool | None = None
    merge_small: int | str | None = None
    max_memory: int | str | None = None
    door: Door = ARRAY
    """The entry point: advice is written in its terms."""


NAMES = frozenset(field.name for field in fields(Options))
"""The names of all options."""


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
