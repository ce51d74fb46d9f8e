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
    """A dataset in a file, by its path without a leading slash.

    `is_virtual` says that it is made of other datasets. `parts` are the datasets that it consists
    of, in order; empty for one dataset.
    """

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    is_virtual: bool = False
    parts: tuple[Candidate, ...] = ()

    @property
    def nbytes(self) -> int:
        """Size in memory, in bytes."""
        return math.prod(self.shape) * self.dtype.itemsize


def choose_dataset(candidates: Sequence[Candidate], *, file: str) -> Candidate:
    """Return the dataset to open if the user names none.

    It is the largest numeric dataset with at least three dimensions. In a file without such
    datasets, it is the largest numeric dataset. If several have its size, it is the one that is
    made of the others.
    """
    numeric = [c for c in candidates if c.dtype.kind in "biufc" and c.shape and c.nbytes > 0]
    frames = [c for c in numeric if len(c.shape) >= 3]
    others = [c for c in candidates if len(c.shape) >= 3 and c not in numeric]
    # if there are other frames, the datasets with less dimensions are probably coordinates
    if not frames and (others or not numeric):
        raise FileFormatError(
            f"{file} contains no dataset of numbers that could be frames, but "
            f"{listing(candidates)}: check that this is the right file, or pass dataset="
        )
    pool = frames or numeric
    chosen = [c for c in pool if c.nbytes == max(each.nbytes for each in pool)]
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


def listing(candidates: Sequence[Candidate]) -> str:
    """Return a line with the names, shapes and types of the largest 12 datasets."""
    ordered = sorted(candidates, key=lambda c: (-c.nbytes, c.name))
    shown = [f"{c.name!r} {c.shape} {c.dtype}" for c in ordered[:12]]
    more = [f"{len(ordered) - 12} more"] if len(ordered) > 12 else []
    return ", ".join(shown + more) or "nothing"
