"""Choose one of the datasets in a file."""

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
    """Path inside the file, without a leading slash."""
    shape: tuple[int, ...]
    """Shape of the dataset."""
    dtype: np.dtype[Any]
    """Type of the values."""
    is_virtual: bool = False
    """Whether it is made of other datasets."""
    parts: tuple[Candidate, ...] = ()
    """The datasets that it consists of, in order; empty for one dataset."""

    @property
    def nbytes(self) -> int:
        """Size in memory, in bytes."""
        return math.prod(self.shape) * self.dtype.itemsize


def choose_dataset(candidates: Sequence[Candidate], *, file: str) -> Candidate:
    """Return the dataset to open if the user names none.

    It is the largest numeric dataset with at least three dimensions. In a file without such
    datasets, it is the largest numeric dataset.
    """
    numeric = [
        c for c in candidates if c.dtype.kind in "biufc" and len(c.shape) > 0 and c.nbytes > 0
    ]
    if not numeric:
        found = f" of numbers, but {listing(candidates)}" if candidates else ", it is empty"
        raise FileFormatError(
            f"{file} contains no dataset{found}: check that this is the right file"
        )
    frames = [c for c in numeric if len(c.shape) >= 3]
    unusable = [c for c in candidates if len(c.shape) >= 3 and c not in numeric]
    if not frames and unusable:  # the other datasets are then probably coordinates
        raise FileFormatError(
            f"{file} contains frames, but they are empty or not numbers: {listing(unusable)}. "
            f"Pass dataset= as one of {listing(numeric)}"
        )
    return choose_largest(frames or numeric, file=file)


def choose_largest(candidates: Sequence[Candidate], *, file: str) -> Candidate:
    """Return the largest dataset; if others have its size, the one that is made of them."""
    largest = max(c.nbytes for c in candidates)
    chosen = [c for c in candidates if c.nbytes == largest]
    if len(chosen) > 1:
        chosen = [c for c in chosen if c.is_virtual]
    if len(chosen) != 1:
        raise FileFormatError(
            f"{file} contains several datasets of the same size: pass dataset= as one of "
            f"{listing(candidates)}"
        )
    return chosen[0]


def unknown_dataset(
    dataset: str | int, candidates: Sequence[Candidate], *, file: str
) -> ArgumentValueError:
    """Return the error for a dataset that does not exist; it lists the existing ones."""
    return ArgumentValueError(
        f"there is no dataset {dataset!r} in {file}: pass one of {listing(candidates)}"
    )


def listing(candidates: Sequence[Candidate], *, most: int = 12) -> str:
    """Return a line with the names, shapes and types of the largest datasets."""
    ordered = sorted(candidates, key=lambda c: c.nbytes, reverse=True)
    shown = [f"{c.name!r} {c.shape} {c.dtype}" for c in ordered[:most]]
    if len(ordered) > most:
        shown.append(f"{len(ordered) - most} more")
    return ", ".join(shown) or "nothing"
