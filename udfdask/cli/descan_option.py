"""Read the shifts of frames from the file after ``--descan``."""

from __future__ import annotations

import re
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np

from udfdask.errors import UDFError
from udfdask.io.damaged_files import existing_file, reading
from udfdask.io.numpy_file import read_npy

SHIFTS = "raw_shifts"
"""The buffer of a center of mass that centers frames."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShiftsFile:
    """A file with the shifts of frames, as typed; it is not read yet."""

    path: Path
    """An .npy or .npz file."""
    name: str | None
    """Name of an array in an .npz file; None for the only one, or that of `com`."""

    def read(self) -> np.ndarray[Any, Any]:
        """Return the shifts; raise BadParameter if they cannot be read."""
        try:
            if self.path.suffix == ".npy":
                return read_npy(self.path)
            path = existing_file(self.path)
            with reading(path, "an .npz file"), zipfile.ZipFile(path), np.load(path) as arrays:
                names = list(arrays.files)
            name = self._choose(names)
            with reading(path, "an .npz file", part=name), np.load(path) as arrays:
                found: np.ndarray[Any, Any] = arrays[name]
                return found
        except (OSError, UDFError) as error:
            raise self._bad(f"'{self.path}' cannot be read: {error}") from error

    def _choose(self, names: list[str]) -> str:
        """Return the name of the array with the shifts; raise BadParameter if it is not clear."""
        if self.name is not None:
            if self.name in names:
                return self.name
            raise self._bad(f"'{self.path}' has no array {self.name!r}, but {', '.join(names)}")
        shifts = [name for name in names if re.search(rf"(^|_){SHIFTS}$", name)] or names
        if len(shifts) == 1:
            return shifts[0]
        raise self._bad(
            f"'{self.path}' has the arrays {', '.join(shifts) or '(none)'}: write which one, as "
            f"{self.path.name}:NAME"
        )

    def _bad(self, text: str) -> click.BadParameter:
        """Return the error with a text."""
        return click.BadParameter(text, param_hint="'--descan'")


def to_shifts(text: str) -> ShiftsFile:
    """Convert ``shifts.npy``, ``found.npz`` or ``found.npz:com_raw_shifts``."""
    found = re.fullmatch(r"(.+?\.(?:npy|npz))(?::(\w+))?", text)
    if found is None or (found[2] is not None and found[1].endswith(".npy")):
        raise click.BadParameter(
            f"{text!r} is not a file of shifts: write the name of an .npy file, or of an .npz file "
            "such as that of an earlier run with --udf com --out found.npz"
        )
    return ShiftsFile(path=Path(found[1]), name=found[2])
