"""The options of a run, as one value: what they are called, and their defaults."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from udfdask.advice import ARRAY, Door
from udfdask.corrections import CorrectionSet
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
