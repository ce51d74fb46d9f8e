"""Write one record to a file, read it back, and notice damage.

A file is an archive of arrays as `numpy.savez` writes it: the zip format has a checksum of each
array. Nothing is pickled, so that a file from elsewhere cannot run code.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from udfdask.types import AnyArray

_NAMES = "names"
"""Array in the archive with the name of the record, and those of all other arrays."""


class DamagedRecordError(Exception):
    """A file is not the complete record that was expected; it counts as missing."""


@dataclass(frozen=True, slots=True, eq=False)
class Record:
    """The arrays of a partial result."""

    name: str
    """Name of the record: equal for equal data, code, parameters and chunk."""
    arrays: Mapping[str, AnyArray]
    """Buffers by name."""
    aux: Mapping[str, AnyArray]
    """Rows of aux data by name."""

    @property
    def nbytes(self) -> int:
        """Size of the arrays in bytes."""
        return sum(int(a.nbytes) for a in (*self.arrays.values(), *self.aux.values()))


def write_record(record: Record, path: str | os.PathLike[str], *, flush: bool = True) -> None:
    """Write a record under another name in the same folder, and rename it.

    With `flush`, wait for the disk before. The new name is safe after
    `writing.replacing.flush` of the folder.
    """
    folder, name = os.path.split(path)  # paths as texts: a Path would take 0.01 ms
    unfinished = f"{folder}{os.sep}.{name}-{uuid.uuid4().hex[:8]}"
    members: dict[str, Any] = {f"arrays/{key}": array for key, array in record.arrays.items()}
    members |= {f"aux/{key}": array for key, array in record.aux.items()}
    members[_NAMES] = np.array([record.name, *members])
    try:
        with open(unfinished, "xb") as file:  # noqa: PTH123
            np.savez(file, **members)
            if flush:
                file.flush()
                os.fsync(file.fileno())
        os.replace(unfinished, path)  # noqa: PTH105
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(unfinished)  # noqa: PTH108
        raise


def read_record(name: str, path: Path) -> Record:
    """Return the record of a name from its file; raise if the file is not that complete record."""
    found: dict[str, dict[str, AnyArray]] = {"arrays": {}, "aux": {}}
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            written = [str(text) for text in file[_NAMES]]
            for member in written[1:]:
                kind, _, key = member.partition("/")
                found[kind][key] = file[member]
    except FileNotFoundError:
        raise DamagedRecordError(f"the record {path} does not exist") from None
    except Exception as error:  # zipfile and NumPy have no common base class of errors
        raise DamagedRecordError(f"the record {path} is damaged: {error}") from error
    if written[0] != name:
        raise DamagedRecordError(f"{path} is not the record {name}, but {written[0]}")
    return Record(name, **found)


def can_store(dtype: np.dtype[Any]) -> bool:
    """Return whether a record can hold arrays of a dtype: not if they contain objects."""
    if dtype.hasobject:
        return False
    try:
        return np.lib.format.descr_to_dtype(np.lib.format.dtype_to_descr(dtype)) == dtype
    except (ValueError, TypeError):
        return False
