"""Which one of a file's datasets is meant."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from udfdask.errors import ArgumentValueError, FileFormatError


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A dataset in a file."""

    name: str
    """Its path inside the file, without a leading slash."""
    shape: tuple[int, ...]
    """Its shape."""
    dtype: np.dtype[Any]
    """Type of its values."""

    @property
    def nbytes(self) -> int:
        """Size when read, bytes."""
        return math.prod(self.shape) * self.dtype.itemsize


def choose_dataset(candidates: Sequence[Candidate], *, file: str) -> Candidate:
    """Take all datasets of a file; return the one that is meant when the user names none.

    It is the only numeric one with three or more dimensions, or the largest of these; in a file
    without any, the same among all numeric ones.
    """
    numeric = [
        c for c in candidates if c.dtype.kind in "biufc" and len(c.shape) > 0 and c.nbytes > 0
    ]
    if not numeric:
        raise FileFormatError(f"{file} holds no dataset of numbers; it holds {listing(candidates)}")
    frames = [c for c in numeric if len(c.shape) >= 3]
    unusable = [c for c in candidates if len(c.shape) >= 3 and c not in numeric]
    if not frames and unusable:
        # Damaged metadata look like that; what is left are positions along the axes.
        raise FileFormatError(
            f"{file} has frames, but they hold nothing or no numbers: {listing(unusable)}. Restore "
            f"the file from a copy, or pass dataset= as one of {listing(numeric)}"
        )
    frames = frames or numeric
    largest = max(c.nbytes for c in frames)
    chosen = [c for c in frames if c.nbytes == largest]
    if len(chosen) > 1:
        raise FileFormatError(
            f"{file} holds several datasets of the same size: pass dataset= as one of "
            f"{listing(frames)}"
        )
    return chosen[0]


def unknown_dataset(
    dataset: str | int, candidates: Sequence[Candidate], *, file: str
) -> ArgumentValueError:
    """Take a name that is not in the file and what is; return an error that lists it."""
    return ArgumentValueError(
        f"there is no dataset {dataset!r} in {file}: pass one of {listing(candidates)}"
    )


def listing(candidates: Sequence[Candidate], *, most: int = 12) -> str:
    """Take datasets; return a line with their names, shapes and types."""
    ordered = sorted(candidates, key=lambda c: c.nbytes, reverse=True)
    shown = [f"{c.name!r} {c.shape} {c.dtype}" for c in ordered[:most]]
    if len(ordered) > most:
        shown.append(f"{len(ordered) - most} more")
    return ", ".join(shown) or "nothing"
