"""Save the results of one or more runs in one file or store."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from dask.base import is_dask_collection

from udfdask.errors import ArgumentTypeError, ArgumentValueError, UDFError
from udfdask.io.kept_results import keep_results
from udfdask.io.named_variables import name_of_class
from udfdask.io.output_formats import check_fits, check_output, write_results
from udfdask.scheduling.compute import compute
from udfdask.scheduling.progress.state import Progress
from udfdask.scheduling.scheduler_options import check_options
from udfdask.tracebacks import own_lines_hidden
from udfdask.writing import Target, check_apart


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

    The suffix is ``.npz``, ``.zarr``, ``.h5``, ``.hspy`` or ``.tif``. Before anything is
    computed, the path and the format are checked. Lazy results are computed together, in one pass
    over the data, and then written. The file is written under another name next to `path` and then
    renamed, so that it is never incomplete. `open_results` reads it.

    If writing fails after the computation, computed results are not lost. They are saved in an
    ``.npz`` file in the same folder, or in a folder for temporary files, and a note of the error
    says where. If this fails too, for example because all disks are full, the error has them as its
    attribute ``results``, a dictionary that `save_results` takes.

    Parameters
    ----------
    path : str or path-like
        Path of the file or store.
    results : Result or SignalResult, or dict, list or tuple of them
        Lazy or computed results. A `SignalResult` is saved as its ``.result``. In the file, a
        result is called ``{udf}_{buffer}``, where ``udf`` is the key of the dictionary. In a list
        it is the name of the UDF in the run, or else the name of its class in lower case without
        "UDF": ``sum_intensity``, and ``sum_2_intensity`` for a second `SumUDF`.
    attrs : dict of str to str, optional
        Attributes of the file, such as a title.
    overwrite : bool
        Replace an existing file of the same format, or a zarr store that contains nothing else.
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
    open_results : Read such a file.
    udfdask.Result.to_zarr : Write results that are larger than memory.

    Examples
    --------
    >>> import tempfile, dask.array as da, udfdask as ud
    >>> from udfdask.udfs import SumSigUDF, SumUDF
    >>> results = ud.run_udf(da.ones((2, 3, 4, 4)), {"total": SumUDF(), "image": SumSigUDF()})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     saved = ud.io.save_results(f"{folder}/sums.npz", results)
    ...     ud.io.open_results(saved)["image_intensity"].values
    array([[16., 16., 16.],
           [16., 16., 16.]])
    """
    check_options("save_results", kwargs, kwargs.get("scheduler"))
    if not isinstance(path, str | os.PathLike):
        raise ArgumentTypeError(
            "save_results takes the path first, as a string or path such as 'results.h5', not a "
            f"{type(path).__name__}"
        )
    named = _by_name(results)
    _check_texts(attrs, sources)
    files = (*sources, *(file for result in named.values() for file in result.files))
    target = check_output(path, overwrite=overwrite, sources=files)
    check_apart([target, *_own_targets(named, files)])
    check_fits(path, named)
    is_lazy = any(map(is_dask_collection, named.values()))
    with own_lines_hidden:
        values = compute(*named.values(), progress=progress, **kwargs)
        done = dict(zip(named, values, strict=True))
        try:
            return write_results(path, done, attrs=attrs, overwrite=overwrite, sources=files)
        except Exception as error:
            if is_lazy and not keep_results(error, path, done, attrs=attrs):
                error.results = done  # type: ignore[attr-defined]
                error.add_note(
                    "The results were computed, but no disk takes them. They are the attribute "
                    "results of this error: in a notebook, sys.last_value.results"
                )
            raise


def _by_name(results: Any) -> dict[str, Any]:
    """Return results by the names of their UDFs in a file."""
    results = _unwrapped(results)
    if _is_result(results):
        return _by_name([results])
    if isinstance(results, Mapping) and not _remedy(results):
        named = {str(name): _unwrapped(result) for name, result in results.items()}
        for name, result in named.items():
            _check_is_result(result, f"results[{name!r}]")
        if len(named) < len(results):
            raise ArgumentValueError(
                f"results must have different names as texts, not {list(results)}"
            )
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


def _is_result(value: Any) -> bool:
    """Return whether a value is a result of `run_udf`; their class is in a room below this one."""
    return isinstance(value, Mapping) and hasattr(value, "extra_axes") and hasattr(value, "files")


def _unwrapped(value: Any) -> Any:
    """Return the result inside a mapping of signals, and anything else unchanged."""
    inner = getattr(value, "result", None)
    return inner if _is_result(inner) else value


def _check_is_result(value: Any, where: str) -> None:
    """Raise unless a value is a result of `run_udf`."""
    if not _is_result(value):
        remedy = _remedy(value)
        if isinstance(value, Mapping | list | tuple) and not remedy:
            remedy = (
                ": compute returns a tuple with one value for each argument, so pass one of them"
            )
        raise ArgumentTypeError(f"{_EXPECTED}, but {where} is a {type(value).__name__}{remedy}")


def _remedy(value: Any) -> str:
    """Return what to do with a value that is not a result; empty if that is not known."""
    if hasattr(value, "data_vars"):
        return ": a Dataset has methods of its own, such as dataset.to_zarr(path)"
    if hasattr(value, "buffers"):
        return ": pass its attribute buffers, a tuple of results"
    if hasattr(value, "shape"):
        return ": numpy.save(path, array) saves an array"
    return ""


def _check_texts(attrs: Any, sources: Any) -> None:
    """Raise unless attributes are texts by name, and sources are several paths."""
    named = isinstance(attrs, Mapping) and all(isinstance(k, str) for k in attrs)
    if attrs is not None and not (named and all(isinstance(v, str) for v in attrs.values())):
        raise ArgumentTypeError(
            f"attrs must be a dictionary of texts, such as {{'title': 'scan 7'}}, not {attrs!r}"
        )
    if sum(len(text) for text in (*(attrs or {}), *(attrs or {}).values())) > _MOST_TEXT:
        raise ArgumentValueError(f"attrs must have at most {_MOST_TEXT} characters in all")
    if isinstance(sources, str | os.PathLike):
        raise ArgumentTypeError(
            f"sources must be a list of paths, such as [{os.fspath(sources)!r}], not one path"
        )


_MOST_TEXT = 4000
"""Maximum length of all attributes; those of an .npz file have at most 64 KiB, in any script."""


def _own_targets(named: Mapping[str, Any], sources: Sequence[Any]) -> Iterator[Target]:
    """Yield the files that the UDFs of lazy results will write themselves."""
    for result in named.values():
        # computed results have written theirs, and results from other processes know no UDF
        if is_dask_collection(result):
            with suppress(UDFError, OSError):
                yield from result.udf._targets([os.fspath(source) for source in sources])
