"""The formats of files of results by their suffixes: what each can hold, and how it is written."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from udfdask.errors import ArgumentValueError, missing_package
from udfdask.results.result import Result
from udfdask.writing.replacing import replacing
from udfdask.writing.targets import Target, check_target

if TYPE_CHECKING:
    import xarray as xr

    from udfdask.saving.writers import FileContent


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A format of files of results."""

    kinds: str
    """NumPy's kinds of the dtypes that it can hold."""
    package: str | None = None
    """The package that writes it."""
    holds_images: bool = False
    """Whether it holds a single image or stack of images."""
    holds_signals: bool = False
    """Whether what it holds must have values."""


FORMATS = {
    ".zarr": Format(kinds="biufcmM", package="zarr"),
    ".nc": Format(kinds="biufcmM", package="h5netcdf"),
    ".npz": Format(kinds="biufcmMSU"),
    ".hspy": Format(kinds="biufc", package="rsciio.hspy", holds_signals=True),
    ".tif": Format(kinds="biuf", package="tifffile", holds_images=True, holds_signals=True),
}
"""The formats by the suffixes of files."""

_DISTRIBUTIONS = {"rsciio.hspy": "rosettasciio"}


def check_suffix(path: Path, known: Iterable[str]) -> None:
    """Raise if the suffix of a path is not a known one."""
    suffix, known = path.suffix.lower(), list(known)
    if suffix in known:
        return
    ends = f"ends in {path.suffix!r}" if suffix else "has no suffix"
    near = difflib.get_close_matches(suffix, known, n=1)
    hint = f"; did you mean {path.with_suffix(near[0]).name!r}?" if near else ""
    *others, last = known
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
    chosen = _format_of(path)
    for package in ("xarray", chosen.package):
        try:
            import_module(package or "numpy")
        except ImportError as error:
            name = _DISTRIBUTIONS.get(package or "", package or "")
            raise missing_package(name, purpose=f"writing {Path(path).name}") from error
    if chosen.package == "zarr":
        from udfdask.results.zarr_store import check_zarr

        check_zarr()
    return check_target(path, is_store=_is_store(path), overwrite=overwrite, sources=sources)


def check_fits(path: str | os.PathLike[str], results: Mapping[str, Result]) -> None:
    """Raise if a file cannot hold results, which can be lazy, by the names of their UDFs."""
    from udfdask.saving.writers import content_of

    content = content_of(results)
    obstacle = _obstacle(_format_of(path), content)
    if obstacle:
        fitting = [suffix for suffix, each in FORMATS.items() if not _obstacle(each, content)]
        others = f". These formats can: {', '.join(fitting)}" if fitting else ""
        raise ArgumentValueError(f"{path} cannot hold the results: {obstacle}{others}")


def write_results(
    path: str | os.PathLike[str],
    results: Mapping[str, Result],
    *,
    attrs: Mapping[str, str] | None,
    overwrite: bool,
    sources: Sequence[str | os.PathLike[str]],
) -> Path:
    """Write computed results, by the names of their UDFs, in the format of the suffix."""
    from udfdask.results.zarr_store import write_dataset
    from udfdask.saving.writers import WRITERS, content_of

    content = content_of(results, attrs)
    if _is_store(path):
        return write_dataset(
            content.dataset, path, masks=content.masks, overwrite=overwrite, sources=sources
        )
    target = check_target(path, overwrite=overwrite, sources=sources)
    with replacing(target) as unfinished:
        WRITERS[Path(path).suffix.lower()](unfinished, content)
    return target.named


def _is_store(path: str | os.PathLike[str]) -> bool:
    """Return whether the suffix of a path is that of a zarr store."""
    return Path(path).suffix.lower() == ".zarr"


def _format_of(path: str | os.PathLike[str]) -> Format:
    """Return the format of a file; raise if its suffix is not a known one."""
    check_suffix(Path(path), FORMATS)
    return FORMATS[Path(path).suffix.lower()]


def _obstacle(chosen: Format, content: FileContent) -> str:
    """Return why a format cannot hold some results; empty if it can."""
    results: dict[Any, xr.DataArray] = {
        name: each for name, each in content.dataset.data_vars.items() if name not in content.masks
    }
    if chosen.holds_images and len(results) != 1:
        names = ", ".join(map(str, results)) or "none"
        return f"a TIFF file holds one result, but there are {len(results)}: {names}"
    for name, each in results.items():
        if each.dtype.kind not in chosen.kinds:
            return f"{name} contains {each.dtype} values"
        if chosen.holds_images and each.ndim not in (2, 3):
            return (
                f"an image has two dimensions, a stack of images three, and {name} has {each.ndim}"
            )
        if chosen.holds_signals and not each.size:
            return f"{name} is empty"
    return "" if results or not chosen.holds_signals else "there is no result to write"
