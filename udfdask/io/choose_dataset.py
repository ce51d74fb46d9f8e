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
    """A dataset in a file, perhaps made of others (`is_virtual`), or of several `parts`.

    `rank` is 3 for frames and for spectra along a line, 2 for an image, 1 or 0 for other data.
    `is_signal` says whether NXdata names it.
    """

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    is_virtual: bool = False
    is_signal: bool = False
    rank: int = 0
    parts: tuple[Candidate, ...] = ()

    @property
    def nbytes(self) -> int:
        """Size in memory, in bytes."""
        return math.prod(self.shape) * self.dtype.itemsize


def choose_dataset(candidates: Sequence[Candidate], *, file: str) -> Candidate:
    """Return the largest dataset of frames, or else of numbers, if the user names none."""
    numeric = [c for c in candidates if c.dtype.kind in "biufc" and c.shape and c.nbytes]
    frames = [c for c in numeric if len(c.shape) >= 3]
    # next to frames that cannot be opened, other datasets are probably coordinates
    if not numeric or (not frames and any(len(c.shape) >= 3 for c in candidates)):
        raise FileFormatError(
            f"{file} contains no frames of numbers, but {listing(candidates)}: check that this is "
            "the right file, or pass dataset= as one of its arrays of numbers"
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


def listing(candidates: Sequence[Candidate]) -> str:
    """Return a line with the names, shapes and types of the largest datasets."""
    ordered = sorted(candidates, key=lambda c: c.nbytes, reverse=True)
    shown = [f"{c.name!r} {c.shape} {c.dtype}" for c in ordered[:12]]
    shown += [f"{len(ordered) - 12} more"] if ordered[12:] else []
    return ", ".join(shown) or "nothing"
