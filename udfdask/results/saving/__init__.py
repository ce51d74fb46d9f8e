"""Save results in one file or store, in the format of its suffix."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from udfdask.base.replacing import replacing
from udfdask.base.targets import Target, check_target
from udfdask.base.tracebacks import own_lines_hidden
from udfdask.errors import ArgumentTypeError, ArgumentValueError, missing_package
from udfdask.geometry.labels import did_you_mean
from udfdask.results.named_results import name_of_class, numbered
from udfdask.results.result import Result
from udfdask.scheduling.compute import check_options, compute
from udfdask.scheduling.progress import Progress

if TYPE_CHECKING:
    from udfdask.results.saving.writers import FileContent


class Format(NamedTuple):
    """NumPy's kinds of dtypes that a format can hold, the module that writes it, its package."""

    kinds: str
    module: str = "xarray"
    package: str = "xarray"


FORMATS = {
    ".zarr": Format("biufcmM", "zarr", "zarr"),
    ".nc": Format("biufcmM", "h5netcdf", "h5netcdf"),
    ".npz": Format("biufcmMSU"),
    ".hspy": Format("biufc", "rsciio.hspy", "rosettasciio"),
    ".tif": Format("biuf", "tifffile", "tifffile"),
}
"""The formats by the suffixes of files."""


def save_results(
    path: str | os.PathLike[str],
    results: Any,
    *,
    attrs: Mapping[str, str] | None = None,
    overwrite: bool = False,
    sources: Sequence[str | os.PathLike[str]] = (),
    progress: Progress = False,
    **kwargs: Any,
) -> Path:
    """Save results in one file or store, in the format of the suffix, as ``udfdask run --out``.

    =========  ===============================================  ==============================
    suffix     contains                                         read it with
    =========  ===============================================  ==============================
    ``.zarr``  all results, with their dimensions and units     ``xarray.open_zarr(path)``
    ``.nc``    the same, in one NetCDF file                     ``xarray.open_dataset(path)``
    ``.npz``   the arrays, and the positions along their axes   ``numpy.load(path)``
    ``.hspy``  a signal for each result                         ``hyperspy.api.load(path)``
    ``.tif``   one image, or one stack of images                ImageJ, DigitalMicrograph, ...
    =========  ===============================================  ==============================

    Path and format are checked before anything is computed. Lazy results are computed together, in
    one pass over the data. The file is never incomplete. If writing fails after the computation,
    the results are the attribute ``results`` of the error.

    Parameters
    ----------
    path : str or path-like
        Path of the file or store.
    results : Result or SignalResult, or dict, list or tuple of them
        Lazy or computed results. In the file, a result is called ``{udf}_{buffer}``, where ``udf``
        is the key of the dictionary. In a list it is the name of the UDF in the run, or else of its
        class in lower case without "UDF": ``sum_intensity``, and ``sum_2_intensity`` for a second
        `SumUDF`. A valid mask of a result is called ``{udf}_{buffer}_valid``; the region of
        interest is the coordinate ``roi``.
    attrs : dict of str to str, optional
        Attributes of the file, such as a title.
    overwrite : bool
        Replace an existing file, or a zarr store that contains nothing else.
    sources : sequence of str or path-like
        More files that are never replaced. Results know the files of their data, except for data
        that were computed or persisted before the run.
    progress : bool, callable or ProgressReporter
        As in `udfdask.compute`.
    **kwargs
        Arguments of `udfdask.compute`: scheduler, num_workers, resources, ...

    Returns
    -------
    pathlib.Path
        Absolute path of the file or store.

    Raises
    ------
    FileExistsError
        If something exists at `path` that must not be replaced.
    OSError
        If `path` cannot be written, for example because its folder does not exist.
    ArgumentTypeError
        If `results` are something else; if no scheduler takes one of the arguments.
    ArgumentValueError
        If no format has the suffix, or the format cannot hold the results or their names; if `path`
        is not local, or is, contains, or is inside a file or store that the data are read from.
    ImportError
        If the package that writes the format is not installed.

    See Also
    --------
    udfdask.Result.to_xarray : Make a Dataset, which xarray writes in any of its formats.
    udfdask.Result.to_zarr : Write results that are larger than memory.

    Examples
    --------
    >>> import tempfile, dask.array as da, numpy as np, udfdask as ud
    >>> from udfdask.udfs import SumSigUDF, SumUDF
    >>> results = ud.run_udf(da.ones((2, 3, 4, 4)), {"total": SumUDF(), "image": SumSigUDF()})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with np.load(ud.save_results(f"{folder}/sums.npz", results)) as arrays:
    ...         arrays["image_intensity"]
    array([[16., 16., 16.],
           [16., 16., 16.]])
    """
    check_options(save_results, kwargs, kwargs.get("scheduler"))
    named = _by_name(results)
    files = (*sources, *(file for result in named.values() for file in result.files))
    check_output(path, overwrite=overwrite, sources=files)
    check_fits(path, named)
    with own_lines_hidden:
        values = compute(*named.values(), progress=progress, **kwargs)
        done = dict(zip(named, values, strict=True))
        try:
            return write_results(path, done, attrs=attrs, overwrite=overwrite, sources=files)
        except Exception as error:
            error.results = done  # type: ignore[attr-defined]
            error.add_note(
                "The results were computed. They are the attribute results of this error: in a "
                "notebook, sys.last_value.results"
            )
            raise


def check_suffix(path: Path, known: Iterable[str]) -> None:
    """Raise if the suffix of a path is not a known one."""
    suffix, known = path.suffix.lower(), list(known)
    if suffix not in known:
        hint = did_you_mean(suffix, known)
        words = f"{str(path)!r}: the suffix says what to write, {', '.join(known)}{hint}"
        raise ArgumentValueError(words)


def check_output(
    path: str | os.PathLike[str], *, overwrite: bool, sources: Sequence[str | os.PathLike[str]]
) -> Target:
    """Return the checked target of a file of results; raise if it cannot be written."""
    check_suffix(Path(path), FORMATS)
    suffix = Path(path).suffix.lower()
    wanted = FORMATS[suffix]
    for module, package in (("xarray", "xarray"), wanted[1:]):
        try:
            import_module(module)
        except ImportError as error:
            raise missing_package(package, purpose=f"writing {Path(path).name}") from error
    return check_target(path, is_store=suffix == ".zarr", overwrite=overwrite, sources=sources)


def check_fits(path: str | os.PathLike[str], results: Mapping[str, Result]) -> None:
    """Raise if a file cannot hold results, which can be lazy, by the names of their UDFs."""
    from udfdask.results.saving.writers import content_of

    content = content_of(results)
    if obstacle := _obstacle(Path(path).suffix.lower(), content):
        fitting = [suffix for suffix in FORMATS if not _obstacle(suffix, content)]
        others = f". These formats can: {', '.join(fitting)}" if fitting else ""
        raise ArgumentValueError(f"{path} cannot hold the results: {obstacle}{others}")


def _obstacle(suffix: str, content: FileContent) -> str:
    """Return why a format cannot hold some results; empty if it can."""
    results = content.dataset.drop_vars(content.masks).data_vars
    if suffix == ".tif" and len(results) != 1:
        names = ", ".join(map(str, results)) or "none"
        return f"a TIFF file holds one result, but there are {len(results)}: {names}"
    for name, each in results.items():
        wide = each.dtype.char in "gG" and suffix == ".tif"  # it writes no pixels, and says nothing
        if each.dtype.kind not in FORMATS[suffix].kinds or wide:
            return f"{name} contains {each.dtype} values"
        if suffix == ".tif" and each.ndim not in (2, 3):
            return f"an image has two dimensions, a stack three, and {name} has {each.ndim}"
        if suffix in (".tif", ".hspy") and not each.size:
            return f"{name} is empty"
    return "there is no result to write" if suffix == ".hspy" and not results else ""


def write_results(
    path: str | os.PathLike[str],
    results: Mapping[str, Result],
    *,
    attrs: Mapping[str, str] | None,
    overwrite: bool,
    sources: Sequence[str | os.PathLike[str]],
) -> Path:
    """Write computed results, by the names of their UDFs, in the format of the suffix."""
    from udfdask.results.saving.writers import WRITERS, content_of
    from udfdask.results.zarr_store import write_dataset

    content, suffix = content_of(results, attrs), Path(path).suffix.lower()
    how: dict[str, Any] = {"overwrite": overwrite, "sources": sources}
    if suffix == ".zarr":
        return write_dataset(content.dataset, path, masks=content.masks, **how)
    target = check_target(path, **how)
    with replacing(target) as unfinished:
        WRITERS[suffix](unfinished, content)
    return target.named


def _by_name(results: Any) -> dict[str, Result]:
    """Return results by the names of their UDFs in a file."""
    if not isinstance(results, (dict, list, tuple)):
        results = [results]
    is_named = isinstance(results, dict)
    named: dict[str, Result] = {}
    for key, given in results.items() if is_named else enumerate(results):
        result = getattr(given, "result", given)  # of signals
        if not isinstance(result, Result):
            raise ArgumentTypeError(
                "save_results takes a Result of run_udf, or a dictionary, list or tuple of them, "
                f"not a {type(result).__name__}"
            )
        name = str(key) if is_named else result.name
        name = name or name_of_class(result.udf_name)
        if is_named and name in named:
            raise ArgumentValueError(f"results must have different names, not {list(results)}")
        named[numbered(name, named)] = result
    return named
