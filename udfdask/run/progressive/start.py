"""Start progressive runs.

Chunks are computed by a scheduler and merged in the thread of the consumer, so that a snapshot can
be read after each merge. `accumulate` explains why a snapshot copies nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import repeat
from typing import Any, Unpack

import dask.array as da
from dask import base

from udfdask.plan.arguments import NAMES
from udfdask.plan.check_input import check_is_array
from udfdask.plan.recipe import DESCAN
from udfdask.results.named_results import ResultInfo
from udfdask.run.options import DescribedData, IterOptions, forwards, take_apart
from udfdask.run.progressive.chunk_source import Chunks, Job
from udfdask.run.progressive.chunks_local import LocalChunks
from udfdask.run.progressive.iterator import ProgressiveRun, UDFIterator
from udfdask.run.progressive.live_recipe import Align, LiveRecipe
from udfdask.run.progressive.snapshot import Snapshot
from udfdask.run.run_udf import make_infos, plan_run, run_udf, show_warnings
from udfdask.scheduling.check_workers import check_workers
from udfdask.scheduling.counter import ProgressCounter, work_of_run
from udfdask.scheduling.job import check_options
from udfdask.scheduling.progress import Progress, choose_reporter
from udfdask.udf import UDF


def prepare_run(
    array: da.Array,
    udf: UDF | Sequence[UDF] | Mapping[str, UDF],
    *,
    plots: Any = None,
    scheduler: Any = None,
    progress: Progress = False,
    align: Align | None = None,
    **kwargs: Any,
) -> ProgressiveRun:
    """Plan a progressive run; nothing runs before the first snapshot is requested.

    `align` aligns changes of parameters with the data. `kwargs` are options of the run, among them
    the `door`, and of the scheduler.
    """
    reporter = choose_reporter(progress)
    chosen = {name: value for name, value in kwargs.items() if name in NAMES}
    of_scheduler = {name: value for name, value in kwargs.items() if name not in NAMES}
    plan, array = plan_run(array, udf, **chosen)
    show_warnings(plan)
    recipe = plan.recipe
    live = LiveRecipe(recipe, plan.parameters, plan.calibration, align)
    names = tuple(udf) if isinstance(udf, dict) else ()
    infos = tuple(
        replace(info, name=None if name is None else str(name))
        for name, info in zip(
            names or repeat(None),
            make_infos(plan),
            strict=False,
        )
    )
    watch = None if plots is None else _live_plot_update(plots, infos)
    aux_values: list[dict[str, Any]] = [{} for _ in recipe.udfs]
    for (number, name), values in zip(recipe.aux_slots, plan.aux, strict=True):
        # UDFs and merges do not see shifts of frames
        if number != DESCAN and not base.is_dask_collection(values):
            aux_values[number][name] = values
    needs_cuda = recipe.grid.n_chunks > 0 and any(udf.needs_cuda for udf in recipe.udfs)
    find = _find_scheduler(scheduler, array)

    def start() -> Chunks:
        job, get = Job(plan, array, live), find()
        client = getattr(get, "__self__", None)
        if hasattr(client, "scatter"):
            check_workers(of_scheduler, client, needs_cuda)
            # it imports distributed, which is optional
            from udfdask.run.progressive.chunks_distributed import ClusterChunks

            return ClusterChunks(job, client, of_scheduler)
        return LocalChunks(job, get, of_scheduler)

    tally = None if reporter is None else ProgressCounter(work_of_run(recipe), reporter)
    return ProgressiveRun(
        live=live,
        infos=infos,
        aux_values=aux_values,
        start=start,
        tally=tally,
        watch=watch,
        names=names,
    )


@forwards(IterOptions, run_udf, prepare_run)
def run_udf_iter(
    array: da.Array | DescribedData,
    udf: UDF | Sequence[UDF] | Mapping[str, UDF],
    *,
    sig_dims: int | None = None,
    roi: Any = None,
    **options: Unpack[IterOptions],
) -> UDFIterator:
    """Run UDFs over a dask array and yield intermediate results.

    Parameters
    ----------
    array, udf, sig_dims, roi, **options
        As in `run_udf`.
    plots : True, str, tuple, list or udfdask.plotting.LivePlot, optional
        The results to draw during the run, a few times a second: True for all that are images or
        lines; a name; a pair ``(name, function)`` with a function of an array; a list of these; or
        a `LivePlot`, which has more options.
    scheduler : str, callable, concurrent.futures.Executor or distributed.Client, optional
        As in `dask.compute`; by default the active client, the configured scheduler, or threads.
    progress : bool, callable or ProgressReporter
        Show a progress bar that counts the frames and bytes of merged chunks, or call a progress
        callback, as in `udfdask.compute`.
    **kwargs
        Arguments of the scheduler: num_workers, pool; on a cluster resources, priority, retries.

    Returns
    -------
    UDFIterator
        Yields a `Snapshot` after each merged chunk. The last one has the results of `run_udf`. An
        empty region of interest gives exactly one. Nothing runs before the first is requested.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If an argument or a UDF's declaration is invalid; if no scheduler takes a keyword argument;
        when the first snapshot is requested: if a cluster has none of the requested `workers`.
    UDFError
        As in `run_udf`.
    DeviceError
        If a UDF needs a CUDA device and none exists, as in `udfdask.compute`; on a cluster when the
        first snapshot is requested, or later.
    ImportError
        If `plots` is given and matplotlib is not installed.

    Warns
    -----
    UDFWarning
        If a task needs much memory; if a live plot has to stop; while the run waits for workers
        with a CUDA device.

    See Also
    --------
    run_udf : Return lazy results, without snapshots.

    Notes
    -----
    Chunks are merged in the order in which they finish. They are merged in navigation order if the
    order can matter: for `merge_all`, and for a UDF with its own `merge` that has nav buffers
    together with other buffers, unless it sets `merge_assigns_nav`. If a UDF has both methods,
    `merge` is used. `merge_all` is called on its last result and the next chunk, or, with
    ``split_every=False``, on all chunks so far each time a snapshot is read.

    For each worker thread, a few chunks are computed ahead of the current snapshot.

    Examples
    --------
    >>> import dask.array as da, udfdask as ud
    >>> from udfdask.udfs import SumUDF
    >>> x = da.ones((3, 3, 2, 2), chunks=(1, 3, 2, 2))
    >>> for snapshot in ud.run_udf_iter(x, SumUDF()):
    ...     snapshot.damage.sum(), snapshot.buffers[0]["intensity"][0, 0]
    (np.int64(3), np.float64(3.0))
    (np.int64(6), np.float64(6.0))
    (np.int64(9), np.float64(9.0))
    """
    check_options(run_udf_iter, options, options.get("scheduler"))
    data, sig_dims, chosen = take_apart(array, sig_dims, options)
    check_is_array(data, "run_udf_iter")
    run = prepare_run(data, udf, sig_dims=sig_dims, roi=roi, **chosen)
    return UDFIterator(run, lambda snapshot: snapshot)


def _live_plot_update(
    plots: Any, infos: Sequence[ResultInfo]
) -> Callable[[Snapshot], object] | None:
    """Return a function that draws a snapshot, or None; check now that the results can be drawn."""
    from udfdask.plotting.live import as_live_plot

    live_plot = as_live_plot(plots, infos)
    return None if live_plot is None else live_plot.update


def _find_scheduler(scheduler: Any, array: da.Array) -> Callable[[], Any]:
    """Return a function that returns the `get` of the scheduler, chosen now if possible."""

    def find() -> Any:
        return base.get_scheduler(scheduler=scheduler, collections=[array])

    try:
        get = find()
    except RuntimeError:
        # an asynchronous client in its event loop; `async for` calls `find` from another thread
        return find
    return lambda: get
