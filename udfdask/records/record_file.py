"""Write one record to a file, read it back, and notice any damage.

A file has these parts: a mark, the length of the header, the header in JSON, the values of the
arrays in C order, and a checksum over all of it. Nothing is pickled, so that a file from elsewhere
cannot run code.
"""

from __future__ import annotations

import ast
import contextlib
import json
import math
import os
import uuid
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from udfdask.types import AnyArray

MARK = b"UDFdask record 1"
_ALIGNMENT = 64
"""Arrays start at multiples of this number of bytes."""
_HEAD = len(MARK) + 8
"""Bytes of the mark and of the length of the header."""
_CHECKSUM = 4
_SMALL = 1 << 20
"""Size in bytes below which a record is written at once: each call takes 0.005 ms."""


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
    `writing.replacing.flush_folder`.
    """
    folder, name = os.path.split(path)  # paths as texts: a Path would take 0.01 ms
    unfinished = f"{folder}{os.sep}.{name}-{uuid.uuid4().hex[:8]}"
    parts = _parts(record)
    if record.nbytes < _SMALL:
        parts = iter([b"".join(parts)])
    try:
        with open(unfinished, "xb", buffering=0) as file:  # noqa: PTH123
            checksum = 0
            for part in parts:
                checksum = zlib.crc32(part, checksum)
                _write_all(file, part)
            _write_all(file, checksum.to_bytes(_CHECKSUM, "little"))
            if flush:
                os.fsync(file.fileno())
        os.replace(unfinished, path)  # noqa: PTH105
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(unfinished)  # noqa: PTH108
        raise


def read_record(name: str, path: Path) -> Record:
    """Return the record of a name from its file; raise if the file is not that complete record."""
    try:
        with path.open("rb", buffering=0) as file:
            content = bytearray(os.fstat(file.fileno()).st_size)
            count = _read_all(file, memoryview(content))
    except FileNotFoundError:
        raise DamagedRecordError(f"the record {path} does not exist") from None
    except OSError as error:
        raise DamagedRecordError(f"the record {path} cannot be read: {error}") from error
    if count < len(content) or not _is_complete(content):
        raise DamagedRecordError(f"the record {path} is damaged")
    try:
        return _decoded(name, content)
    except (
        ValueError,
        TypeError,
        LookupError,
        SyntaxError,
        AttributeError,
        OverflowError,
        RecursionError,
    ) as error:
        raise DamagedRecordError(f"{path} is not the record {name}: {error}") from error


def can_store(dtype: np.dtype[Any]) -> bool:
    """Return whether a record can hold arrays of a dtype: not if they contain objects."""
    if dtype.hasobject:
        return False
    try:
        return _dtype(_text(dtype)) == dtype
    except (ValueError, TypeError):
        return False


def _parts(record: Record) -> Iterator[bytes | memoryview]:
    """Yield the parts of the file of a record, without its checksum."""
    arrays = [
        (kind, name, np.ascontiguousarray(array).reshape(np.shape(array)))
        for kind in ("arrays", "aux")
        for name, array in getattr(record, kind).items()
    ]
    header = json.dumps(
        {
            "name": record.name,
            "values": [(kind, name, _text(a.dtype), a.shape) for kind, name, a in arrays],
        }
    ).encode()
    header += b" " * (-(_HEAD + len(header)) % _ALIGNMENT)
    yield MARK + len(header).to_bytes(8, "little") + header
    for _, _, array in arrays:
        if array.nbytes:
            yield array.reshape(-1).view(np.uint8).data
            yield bytes(-array.nbytes % _ALIGNMENT)


def _is_complete(content: bytearray) -> bool:
    """Return whether the checksum and the mark are right."""
    if len(content) < _HEAD + _CHECKSUM or not content.startswith(MARK):
        return False
    view = memoryview(content)
    checksum = int.from_bytes(view[-_CHECKSUM:], "little")
    return zlib.crc32(view[:-_CHECKSUM]) == checksum


def _decoded(name: str, content: bytearray) -> Record:
    """Return the record in the content of a file."""
    length = int.from_bytes(content[len(MARK) : _HEAD], "little")
    header = json.loads(content[_HEAD : _HEAD + length])
    if header["name"] != name:
        raise ValueError(f"it is named {header['name']}")
    found: dict[str, dict[str, AnyArray]] = {"arrays": {}, "aux": {}}
    offset = _HEAD + length
    for kind, key, text, shape in header["values"]:
        dtype = _dtype(text)
        if dtype.hasobject:  # the bytes of a forged file would be taken for addresses
            raise ValueError("it contains objects")
        size = math.prod(shape) * dtype.itemsize
        if size:
            flat = np.frombuffer(content, np.uint8, size, offset)  # writable, as the buffer is
            found[kind][key] = np.ndarray(shape, dtype, flat)
        else:
            found[kind][key] = np.empty(shape, dtype)
        offset += size + -size % _ALIGNMENT
    if offset != len(content) - _CHECKSUM:
        raise ValueError("its size is wrong")
    return Record(name, **found)


def _text(dtype: np.dtype[Any]) -> str:
    """Return a dtype as text, as .npy files have it."""
    return repr(np.lib.format.dtype_to_descr(dtype))


def _dtype(text: str) -> np.dtype[Any]:
    """Return the dtype of a text."""
    return np.lib.format.descr_to_dtype(ast.literal_eval(text))


def _write_all(file: Any, part: bytes | memoryview) -> None:
    """Write all bytes: Linux writes at most 2 GiB at once."""
    left = memoryview(part)
    while left:
        left = left[file.write(left) :]


def _read_all(file: Any, target: memoryview) -> int:
    """Read until a buffer is full or the file ends; return the number of bytes."""
    count = 0
    while count < len(target) and (more := file.readinto(target[count:])):
        count += more
    return count
