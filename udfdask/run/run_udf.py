"""Run UDFs over a dask array, lazily: the main entry point."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, overload

import dask.array as da

from udfdask.advice import ARRAY, Door
from udfdask.base.tracebacks import own_lines_hidden, warn_user
from udfdask.explanation.costs import advised
from udfdask.geometry.roi import Region
from udfdask.graph.build import build_graph, count_tasks
from udfdask.graph.dask_internals.expressions import as_dask
from udfdask.graph.inputs import files_of_run, with_dask_arrays
from udfdask.plan.arguments import Options
from udfdask.plan.check_input import check_is_array
from udfdask.plan.plan import Plan, make_plan
from udfdask.results.named_results import ResultInfo
from udfdask.results.result import Result
from udfdask.run.options import (
    ArrayOptions,
    DescribedData,
    RunOptions,
    check_names,
    forwards,
    take_apart,
    unused_corrections,
)
from udfdask.scheduling.compute import compute, persist
from udfdask.udf import UDF
from udfdask.udf.libertem_udfs import as_own
from udfdask.udf.written_methods import is_of_user

T = TypeVar("T")

__all__ = ["compute", "explain", "persist", "run_udf"]

if TYPE_CHECKING:
    from udfdask.explanation.describe import Explanation


@overload
def run_udf(
    array: da.Array | DescribedData, udf: UDF, **options: Unpack[ArrayOptions]
) -> Result[da.Array]: ...
@overload
def run_udf(
    array: da.Array | DescribedData, udf: Sequence[UDF], **options: Unpack[ArrayOptions]
) -> tuple[Result[da.Array], ...]: ...
@overload
def run_udf(
    array: da.Array | DescribedData, udf: Mapping[str, UDF], **options: Unpack[ArrayOptions]
) -> dict[str, Result[da.Array]]: ...
@forwards(RunOptions, Options)
def run_udf(
    array: da.Array | DescribedData,
    udf: UDF | Sequence[UDF] | Mapping[str, UDF],
    *,
    sig_dims: int | None = None,
    roi: Region | None = None,
    **options: Unpack[RunOptions],
) -> Result | tuple[Result, ...] | dict[str, Result]:
    """Run one UDF, or several in one pass, over a dask array; nothing is computed yet.

    Parameters
    ----------
    array : dask.array.Array or OpenedFile, shape (*nav, *sig)
        The data; any chunks will do. Signal axes are the last ones. An opened file brings its axes
        and its number of signal axes along.
    udf : UDF, or list, tuple or dict of UDF
        The UDFs to run. All UDFs of a list or dictionary share one pass over the data.
    sig_dims : int, optional
        Number of signal axes; by default those of an opened file, otherwise 2.
    roi : array-like, optional
        The scan positions to process: a boolean array of shape `nav` (True = processed), dense or
        sparse, a position ``(y, x)``, slices such as ``np.s_[3:7, 9:12]``, or a list of
        ``((y, x), True or False)``. By default all positions.
    axes : sequence of Axis or OpenedFile, optional
        Names, scales and units, one axis per dimension ``(*nav, *sig)``, or the file that has them.
        Parameters of UDFs may be in their units, ``r="10 mrad"``.
    unit : str, optional
        Unit of the values, such as "counts". Results in the same unit carry it.
    voltage : str, tuple or float, optional
        Acceleration voltage of the electrons, such as "300 kV", ``(300, "kV")`` or 300e3 for volts;
        by default that of an opened file. With it, parameters of UDFs can be in mrad if axes are in
        1/nm, and the other way round.
    corrections : CorrectionSet, optional
        Dark frame, gain map and broken pixels of the detector: UDFs see corrected data, in
        float32 or better.
    descan : Descan or array-like, optional
        Shifts that are removed from the frames, after corrections: an array of shape (*nav, sig
        dims) in pixels, such as ``com["raw_shifts"]`` of a `CoMUDF`, or a `Descan`, which can also
        shift by parts of a pixel.
    backends : str or sequence of str, optional
        The array backends that UDFs may get, as constants of `UDF` such as "numpy". By default all
        backends that a UDF declares.
    split_every : int or False, optional
        Fan-in of merge trees; False merges in one step. By default 8 (config
        `udfdask.split-every`). The class attribute of a UDF overrides both.
    merge_small : int or str, optional
        Least size of the data of a task, in bytes or as a text such as "64 MiB". Neighboring chunks
        are joined until they are that large, without the tasks of a rechunk; nav results have the
        joined chunks. By default each chunk has its own task.
    max_memory : int or str, optional
        Memory of one process (a worker of a cluster, or this one) in bytes or as a text such as
        "2 GB". A run that needs more is refused, with what needs it and what helps. Its number of
        threads is config `udfdask.worker-threads`, by default the number that dask uses here.

    Returns
    -------
    Result, tuple of Result or dict of Result
        A `Result` for a UDF, a tuple of them for a list, a dictionary of them with the same names
        for a dictionary.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If an argument or a UDF's declaration is invalid; also a TypeError or a ValueError.
    MissingMergeError
        If a UDF has sig or single buffers and neither `merge` nor `merge_all`.
    MemoryLimitError
        If the run needs more than `max_memory`; also a MemoryError.
    UDFError
        If a UDF has another mistake.

    Warns
    -----
    UDFWarning
        If a task needs much memory, there are many small blocks, or `roi` selects no position.

    Examples
    --------
    >>> import dask.array as da, udfdask as ud
    >>> from udfdask.udfs import SumSigUDF, SumUDF
    >>> x = da.ones((4, 6, 8, 8), chunks=(2, 6, 8, 8))
    >>> total, sums = ud.run_udf(x, [SumUDF(), SumSigUDF()], sig_dims=2)
    >>> total["intensity"].shape, sums["intensity"].shape
    ((8, 8), (4, 6))
    >>> sums["intensity"].max().compute()
    np.float64(64.0)
    """
    check_names(run_udf, options)
    results: Result | tuple[Result, ...] | dict[str, Result]
    results = run_for(ARRAY, array, udf, sig_dims=sig_dims, roi=roi, **options)
    return results


def run_for(door: Door, array: Any, udf: Any, **options: Any) -> Any:
    """Return the results of `run_udf` for the users of an entry point."""
    plan, array = plan_run(array, udf, door=door, **options)
    show_warnings(plan)
    return in_form_of(udf, make_results(plan, array, udf))


@forwards(RunOptions, run_udf)
def explain(
    array: da.Array | DescribedData,
    udf: UDF | Sequence[UDF] | Mapping[str, UDF],
    *,
    sig_dims: int | None = None,
    roi: Region | None = None,
    measure: bool = False,
    **options: Unpack[RunOptions],
) -> Explanation:
    """Describe what `run_udf` would do with the same arguments.

    Parameters
    ----------
    array, udf, sig_dims, roi
        As in `run_udf`.
    measure
        Whether to run the UDFs over a chunk for each processor of this machine, three times, to
        estimate the time of the run, and to warn if threads do not help. Otherwise nothing runs.
    **options
        As in `run_udf`.

    Returns
    -------
    Explanation
        `print` shows chunks, tasks, bytes read, memory of a task, tile shape and merges.

    Raises
    ------
    UDFError
        As in `run_udf`.

    Examples
    --------
    >>> import dask.array as da, udfdask as ud
    >>> from udfdask.udfs import SumUDF
    >>> x = da.ones((64, 64, 32, 32), chunks=(8, 64, 32, 32), dtype="uint16")
    >>> ud.explain(x, SumUDF()).bytes_read
    8388608
    """
    check_names(explain, options)
    return explain_for(ARRAY, array, udf, sig_dims=sig_dims, roi=roi, measure=measure, **options)


def explain_for(
    door: Door, array: Any, udf: Any, *, measure: bool = False, **options: Any
) -> Explanation:
    """Return the description of a run for the users of an entry point."""
    plan, data = plan_run(array, udf, door=door, caller="explain", **options)
    explanation = make_results(plan, data, udf)[0].explain()
    if not measure or not plan.recipe.grid.n_chunks:
        return explanation
    from udfdask.run.speed import explain_speed, measure_speed

    def run(mask: Any, threads: int) -> None:
        some, data = plan_run(array, udf, door=door, **{**options, "roi": mask})
        compute(*make_results(some, data, udf), scheduler="threads", num_workers=threads)

    recipe = plan.recipe
    speed = measure_speed(recipe.grid, recipe.shape.sig.size * recipe.dtype.itemsize, run)
    own = [n for n, u in zip(plan.names, recipe.udfs, strict=True) if is_of_user(u.cls)]
    return explain_speed(explanation, speed, own, door)


def plan_run(
    array: Any, udf: Any, *, sig_dims: int | None = None, caller: str = "run_udf", **options: Any
) -> tuple[Plan, Any]:
    """Return the plan of a run, and its dask array.

    `options` are those of `udfdask.plan.arguments.Options`; `caller` is the user's function.
    """
    advice = unused_corrections(array, options)
    array, sig_dims, chosen = take_apart(array, sig_dims, options)
    array = as_dask(array)
    check_is_array(array, caller)
    with own_lines_hidden:
        udfs = [with_dask_arrays(one) for one in as_list(udf)]
        chosen = {name: with_dask_arrays(value) for name, value in chosen.items()}
        files = files_of_run(array, udfs, chosen.get("descan"), chosen.get("corrections"))
        names = [str(name) for name in udf] if isinstance(udf, dict) else None
        plan = make_plan(array, udfs, names=names, files=files, sig_dims=sig_dims, **chosen)
        if (most := chosen.get("max_memory")) is not None:
            from udfdask.explanation.memory import check_memory  # few runs need it

            check_memory(plan, array, most)
    return advised(replace(plan, advice=(*plan.advice, *advice))), array


def show_warnings(plan: Plan) -> None:
    """Warn of what a plan advises."""
    for advice in plan.advice:
        warn_user(advice.said(plan.door))


def make_results(plan: Plan, array: da.Array, udf: Any) -> tuple[Result, ...]:
    """Return the lazy results of a plan; `udf` has the names that the user gave."""
    tasks_of_udfs = build_graph(plan, array)

    @functools.cache
    def explain() -> Explanation:
        from udfdask.explanation.describe import describe  # runs do not need it

        return describe(plan, array, count_tasks(tasks_of_udfs))

    infos = make_infos(plan, udf, explain)
    pairs = zip(infos, tasks_of_udfs, strict=True)
    return tuple(Result(info, tasks=tasks) for info, tasks in pairs)


def make_infos(
    plan: Plan, udf: Any, explain: Callable[[], Explanation] | None = None
) -> tuple[ResultInfo, ...]:
    """Return the metadata of the results of each UDF; `explain` describes a run that is lazy."""
    names = map(str, udf) if isinstance(udf, dict) else itertools.repeat(None)
    return tuple(
        ResultInfo(
            udf_name=u.name,
            name=name,
            buffers=u.outputs,
            grid=plan.recipe.grid,
            sig_shape=tuple(plan.recipe.shape.sig),
            explain=explain,
            notes=tuple(text for one, text in plan.notes if one == number),
            extra_axes=u.axes,
            calibration=plan.calibration,
            units=plan.units[number],
            in_units=frozenset(u.cls.keeps_units),
            default_plots=tuple(n for n in u.cls.default_plots if n in u.outputs),
            files=plan.files,
            parameters=plan.parameter_texts[number],
        )
        for number, (u, name) in enumerate(zip(plan.recipe.udfs, names, strict=False))
    )


def as_list(udf: Any) -> list[UDF]:
    """Return one UDF, or a sequence or dictionary of UDFs, as a list; those of LiberTEM adapted."""
    if isinstance(udf, (list, tuple)):
        return [as_own(one) for one in udf]
    if isinstance(udf, dict):
        return [as_own(one) for one in udf.values()]
    return [as_own(udf)]


def in_form_of(udf: Any, results: tuple[T, ...]) -> T | tuple[T, ...] | dict[str, T]:
    """Return the results of UDFs: one for a UDF, a dictionary for one of UDFs, else the tuple."""
    if isinstance(udf, dict):
        return dict(zip(udf, results, strict=True))
    return results if isinstance(udf, (list, tuple)) else results[0]
