"""Find out before a long computation whether its results can be written."""

from __future__ import annotations

import errno
import math
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from dask.utils import format_bytes

from udfdask.errors import ArgumentValueError, UDFError
from udfdask.geometry.axes import Axis
from udfdask.io.named_variables import Variable, axes_of, axes_of_data, planned_by_udf
from udfdask.io.output_formats import OutputFormat, output_format
from udfdask.writing import Target
from udfdask.writing.replacing import FULL
from udfdask.writing.scratch import scratch_for


def rehearse(target: Target, results: Mapping[str, Any], attrs: Mapping[str, str] | None) -> None:
    """Raise if lazy results, by the names of their UDFs, surely cannot be written to a target.

    The disk must have space for them, if its free space is known. Then a small file of the same
    form is written next to the target, and removed: it has the same names, axes, dtypes and
    attributes, but only the first position of each axis without labels. It is written with the same
    packages to the same disk, so it fails where the complete file would.
    """
    each = output_format(target.named)
    planned = planned_by_udf(results)
    _check_space(target, each, planned)
    axes = axes_of_data(results)
    small = {
        udf: {buffer: _first_position(variable, axes) for buffer, variable in buffers.items()}
        for udf, buffers in planned.items()
    }
    try:
        with scratch_for(target.path) as folder:
            path = folder / f"a{target.named.suffix}"
            each.write(path, small, axes=[_first(axis) for axis in axes], attrs=attrs)
    except (UDFError, ImportError):
        raise
    except Exception as error:  # the packages that write files raise errors of many kinds
        raise _refused(target, error) from error


def _first_position(variable: Variable, axes: Sequence[Axis]) -> Variable:
    """Return a variable of zeros with all labels, but one position along all other axes."""
    shape = [
        size if axis.labels is not None else min(size, 1)
        for axis, size in zip(axes_of(variable, axes), variable.values.shape, strict=True)
    ]
    return replace(
        variable,
        values=np.zeros(shape, variable.values.dtype),
        extra_axes=tuple(map(_first, variable.extra_axes)),
    )


def _first(axis: Axis) -> Axis:
    """Return an axis with its first value, if it has a list of values."""
    return axis if axis.values is None else replace(axis, values=axis.values[:1])


def _check_space(
    target: Target, each: OutputFormat, planned: Mapping[str, Mapping[str, Variable]]
) -> None:
    """Raise if the disk of a target has less free space than the results surely need."""
    if each.is_smaller:
        return
    arrays = [variable.values for buffers in planned.values() for variable in buffers.values()]
    needed = sum(array.nbytes for array in arrays)
    free = free_bytes(target.path.parent)
    if needed > free:
        raise OSError(
            errno.ENOSPC,
            f"the results need {format_bytes(needed)}, but the disk has only "
            f"{format_bytes(int(free))} free. Nothing was computed: free some space, or choose a "
            "path on another disk",
            str(target.named),
        )


def free_bytes(folder: Path) -> float:
    """Return the largest number of bytes that can be written to a disk; infinity if unknown."""
    try:
        disk = shutil.disk_usage(folder)
    except OSError:
        return math.inf
    # not `free`, which leaves out the reserve of the administrator; some network disks say 0 of 0
    return disk.total - disk.used if disk.total else math.inf


def _refused(target: Target, error: Exception) -> Exception:
    """Return the error about a target for which the small file could not be written."""
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    # names of files in the message are those of the small file, which is gone
    number: Any = getattr(error, "errno", None)
    if number in FULL:  # h5py has a long text
        reason = f"{os.strerror(number)}: free some space, or choose a path on another disk"
    text = f"{target.kind.words} with these results cannot be written here: {reason}"
    if not isinstance(error, OSError) or error.errno == errno.ENAMETOOLONG:
        text += " (if this is about the name of a UDF, buffer or label, give it another one)"
    text += ". Nothing was computed"
    if isinstance(error, OSError):
        return type(error)(error.errno or errno.EIO, text, os.fspath(target.named))
    return ArgumentValueError(f"{target.named}: {text}")
