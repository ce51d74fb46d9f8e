"""The formats of result files by their suffixes: what each can hold, and how it is written."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from udfdask.errors import ArgumentValueError
from udfdask.geometry.axes import Axis
from udfdask.io.named_variables import (
    Variable,
    axes_of_data,
    planned_variables,
    result_variables,
    variables_by_name,
)
from udfdask.io.npz_file import write_npz
from udfdask.io.write_hdf5 import check_h5py, hdf5_obstacle, write_hdf5
from udfdask.io.write_hspy import check_rosettasciio, hspy_obstacle, write_hspy
from udfdask.io.write_tiff import check_tifffile, tiff_obstacle, write_tiff
from udfdask.io.write_zarr import check_packages, write_zarr
from udfdask.writing import HDF5, NPZ, TIFF, ZARR, Kind, Target, check_target, replacing

Variables = Mapping[str, Variable]
"""Results by their names in a file."""


def _no_package() -> None:
    """Do nothing: the format needs no package."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputFormat:
    """A format of files or stores with results."""

    kind: Kind
    """The kind of file or folder."""
    obstacle: Callable[[Variables], str]
    """Returns why the format cannot hold some results, in words; empty if it can."""
    write: Callable[..., Path]
    """Writes results completely or not at all, with the arguments of `write_zarr`."""
    check_packages: Callable[[], Any] = _no_package
    """Raises ImportError if a package is missing."""


def _npz_obstacle(variables: Variables) -> str:
    """Return why an .npz file cannot hold these results; empty if it can."""
    for name, variable in variables.items():
        if variable.values.dtype.hasobject:
            return f"{name} contains Python objects"
    return ""


def _zarr_obstacle(variables: Variables) -> str:
    """Return why a zarr store cannot hold these results; empty if it can."""
    for name, variable in variables.items():
        if variable.values.dtype.kind not in "biufcmM":
            return f"{name} contains {variable.values.dtype} values, not numbers or times"
    return ""


def _writer(
    kind: Kind,
    fill: Callable[[Path, Variables, Sequence[Axis], Mapping[str, str]], None],
) -> Callable[..., Path]:
    """Return a function with the arguments of `write_zarr` that fills a new file in its place."""

    def write(
        path: str | os.PathLike[str],
        results: Mapping[str, Mapping[str, Variable]],
        *,
        axes: Sequence[Axis] = (),
        attrs: Mapping[str, str] | None = None,
        overwrite: bool = False,
        sources: Sequence[str | os.PathLike[str]] = (),
    ) -> Path:
        target = check_target(path, kind, overwrite=overwrite, sources=sources)
        with replacing(target) as unfinished:
            fill(unfinished, variables_by_name(results), axes, attrs or {})
        return target.named

    return write


_NPZ = OutputFormat(kind=NPZ, obstacle=_npz_obstacle, write=write_npz)
_ZARR = OutputFormat(
    kind=ZARR,
    obstacle=_zarr_obstacle,
    write=write_zarr,
    check_packages=check_packages,
)
_HDF5 = OutputFormat(
    kind=HDF5,
    obstacle=hdf5_obstacle,
    write=_writer(HDF5, write_hdf5),
    check_packages=check_h5py,
)
_HSPY = OutputFormat(
    kind=HDF5,
    obstacle=hspy_obstacle,
    write=_writer(HDF5, write_hspy),
    check_packages=check_rosettasciio,
)
_TIFF = OutputFormat(
    kind=TIFF,
    obstacle=tiff_obstacle,
    write=_writer(TIFF, write_tiff),
    check_packages=check_tifffile,
)

FORMATS: dict[str, OutputFormat] = {
    ".npz": _NPZ,
    ".zarr": _ZARR,
    ".h5": _HDF5,
    ".hspy": _HSPY,
    ".tif": _TIFF,
}
"""The formats by the suffixes that messages name."""

SYNONYMS = {".hdf5": ".h5", ".tiff": ".tif"}
"""Other suffixes of the same formats."""


def output_format(path: Path) -> OutputFormat:
    """Return the format of a file; raise if its suffix is not a known one."""
    check_suffix(path, (*FORMATS, *SYNONYMS), FORMATS)
    suffix = path.suffix.lower()
    return FORMATS[SYNONYMS.get(suffix, suffix)]


def check_suffix(path: Path, known: Collection[str], named: Iterable[str]) -> None:
    """Raise if the suffix of a path is not a known one; the message has the named ones."""
    suffix = path.suffix.lower()
    if suffix in known:
        return
    ends = f"ends in {path.suffix!r}" if suffix else "has no suffix"
    near = difflib.get_close_matches(suffix, known, n=1)
    hint = f"; did you mean {path.with_suffix(near[0]).name!r}?" if near else ""
    *others, last = named
    raise ArgumentValueError(
        f"{str(path)!r} {ends}, but the suffix says what to write: {', '.join(others)} or {last}"
        f"{hint}"
    )


def check_output(
    path: str | os.PathLike[str],
    *,
    overwrite: bool,
    sources: Sequence[str | os.PathLike[str]],
) -> Target:
    """Return the checked target of a file of results; raise if it cannot be written."""
    each = output_format(Path(path))
    each.check_packages()
    return check_target(path, each.kind, overwrite=overwrite, sources=sources)


def check_fits(path: str | os.PathLike[str], results: Mapping[str, Any]) -> None:
    """Raise if a file cannot hold results, which can be lazy, by the names of their UDFs."""
    variables = planned_variables(results)
    obstacle = output_format(Path(path)).obstacle(variables)
    if not obstacle:
        return
    fitting = [suffix for suffix, each in FORMATS.items() if not each.obstacle(variables)]
    others = f". These formats can: {', '.join(fitting)}" if fitting else ""
    raise ArgumentValueError(f"{path} cannot hold the results: {obstacle}{others}")


def write_results(
    path: str | os.PathLike[str],
    results: Mapping[str, Any],
    *,
    attrs: Mapping[str, str] | None,
    overwrite: bool,
    sources: Sequence[str | os.PathLike[str]],
) -> Path:
    """Write computed results, by the names of their UDFs, in the format of the suffix."""
    return output_format(Path(path)).write(
        path,
        result_variables(results),
        axes=axes_of_data(results),
        attrs=attrs,
        overwrite=overwrite,
        sources=sources,
    )
