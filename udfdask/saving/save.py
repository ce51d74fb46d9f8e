"""Save the results of one or more runs in one file or store."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.results.named_results import name_of_class
from udfdask.results.result import Result
from udfdask.saving.formats import check_fits, check_output, write_results
from udfdask.scheduling.compute import compute
from udfdask.scheduling.job import check_options
from udfdask.scheduling.progress import Progress
from udfdask.tracebacks import own_lines_hidden


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
        Lazy or computed results. A `SignalResult` is saved as its ``.result``. In the file, a
        result is called ``{udf}_{buffer}``, where ``udf`` is the key of the dictionary. In a list
        it is the name of the UDF in the run, or else the name of its class in lower case without
        "UDF": ``sum_intensity``, and ``sum_2_intensity`` for a second `SumUDF`. If a result has a
        valid mask of its own, the mask is called ``{udf}_{buffer}_valid``; the region of interest
        is the coordinate ``roi``.
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
    FileNotFoundError
        If the folder of `path` does not exist.
    OSError
        If `path` cannot be written, for example on a read-only disk.
    ArgumentTypeError
        If `results` are something else; if no scheduler takes one of the arguments.
    ArgumentValueError
        If no format has the suffix, or the format cannot hold the results or their names; if `path`
        is not a local path, or it is, contains, or is inside a file or store that the data are read
        from.
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
    if not isinstance(path, str | os.PathLike):
        raise ArgumentTypeError(
            f"save_results takes the path first, such as 'results.nc', not a {type(path).__name__}"
        )
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


def save_elsewhere(
    error: Exception, path: Path, results: Mapping[str, Result], attrs: Mapping[str, str]
) -> None:
    """Save computed results that could not be written to a path in a folder for temporary files.

    A note of the error says where.
    """
    with suppress(Exception):  # what failed before may fail again
        place = Path(tempfile.mkdtemp(prefix="udfdask-results-")) / f"{path.stem}.npz"
        kept = write_results(place, results, attrs=attrs, overwrite=False, sources=())
        error.add_note(f"The results were computed and are saved in {kept}")


def _by_name(results: Any) -> dict[str, Result]:
    """Return results by the names of their UDFs in a file."""
    results = _unwrapped(results)
    if isinstance(results, Result):
        return _by_name([results])
    if isinstance(results, dict):
        named = {str(name): _unwrapped(result) for name, result in results.items()}
        for name, result in named.items():
            _check_is_result(result, f"results[{name!r}]")
        if len(named) < len(results):
            raise ArgumentValueError(f"results must have different names, not {list(results)}")
        return named
    if not isinstance(results, list | tuple):
        raise ArgumentTypeError(f"{_EXPECTED}, not a {type(results).__name__}{_remedy(results)}")
    named = {}
    for place, result in enumerate(map(_unwrapped, results)):
        _check_is_result(result, f"results[{place}]")
        first = name = result.name or name_of_class(result.udf_name)
        n = 1
        while name in named:
            n += 1
            name = f"{first}_{n}"
        named[name] = result
    return named


_EXPECTED = "save_results takes a Result of run_udf, or a dictionary, list or tuple of them"


def _unwrapped(value: Any) -> Any:
    """Return the result inside a mapping of signals, and anything else unchanged."""
    inner = getattr(value, "result", None)
    return inner if isinstance(inner, Result) else value


def _check_is_result(value: Any, where: str) -> None:
    """Raise unless a value is a result of `run_udf`."""
    if not isinstance(value, Result):
        raise ArgumentTypeError(
            f"{_EXPECTED}, but {where} is a {type(value).__name__}{_remedy(value)}"
        )


def _remedy(value: Any) -> str:
    """Return what to do with a value that is not a result; empty if that is not known."""
    if hasattr(value, "data_vars"):
        return ": a Dataset has methods of its own, such as dataset.to_zarr(path)"
    if hasattr(value, "buffers"):
        return ": pass its attribute buffers, a tuple of results"
    if hasattr(value, "shape"):
        return ": numpy.save(path, array) saves an array"
    if isinstance(value, Mapping | list | tuple):
        return ": compute returns a tuple with one value for each argument, so pass one of them"
    return ""
