"""Starts progressive runs.

Chunks are computed by a scheduler and merged in the thread of the consumer, so that a snapshot can
be read after each merge. A snapshot costs no copy: rows of nav results are written once, and each
merge makes new sig and single buffers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Unpack

import dask.array as da
from dask import base

from udfdask.corrections import CorrectionSet
from udfdask.plan.plan import check_is_array
from udfdask.results.named_results import About
from udfdask.run.forwarding import forwards
from udfdask.run.options import IterOptions, check_iter_options
from udfdask.run.progressive.chunk_source import Chunks, Job
from udfdask.run.progressive.chunks_distributed import ClusterChunks
from udfdask.run.progressive.chunks_local import LocalChunks
from udfdask.run.progressive.iterator import ProgressiveRun, UDFIterator
from udfdask.run.progressive.live_recipe import LiveRecipe
from udfdask.run.progressive.snapshot import Snapshot
from udfdask.run.run_udf import describe_results, plan_run, run_udf, show_warnings
from udfdask.scheduling.progress.counter import Tally
from udfdask.scheduling.progress.reporters import choose_reporter
from udfdask.scheduling.progress.state import Progress
from udfdask.scheduling.progress.work import work_of_run
from udfdask.scheduling.workers.wait_for_workers import check_device, check_workers
from udfdask.udf import UDF

_STACKLEVEL = 3
"""Of warnings: from `prepare_run` over `run_udf_iter` to the user's line."""


def prepare_run(
    array: da.Array,
    udf: UDF | Sequence[UDF],
    *,
    sig_dims: int = 2,
    roi: Any = None,
    corrections: CorrectionSet | None = None,
    backends: Any = None,
    split_every: int | bool | None = None,
    plots: Any = None,
    scheduler: Any = None,
    progress: Progress = False,
    **kwargs: Any,
) -> ProgressiveRun:
    """Plan a progressive run; nothing runs before an iterator is asked for a snapshot."""
    reporter = choose_reporter(progress)
    plan, array = plan_run(
        array,
        udf,
        sig_dims=sig_dims,
        roi=roi,
        corrections=corrections,
        backends=backends,
        split_every=split_every,
    )
    show_warnings(plan, stacklevel=_STACKLEVEL)
    recipe = plan.recipe
    live = LiveRecipe(recipe, plan.parameters)
    abouts = describe_results(plan, recipe.grid.n_chunks)
    watch = None if plots is None else _drawing(plots, abouts)
    known_aux: list[dict[str, Any]] = [{} for _ in recipe.udfs]
    for (number, name), values in zip(recipe.aux_slots, plan.aux, strict=True):
        if not base.is_dask_collection(values):
            known_aux[number][name] = values
    needy = [u.name for u in recipe.udfs if u.needs_cuda] if recipe.grid.n_chunks else []
    find = _scheduler(scheduler, array, needy)

    def start() -> Chunks:
        job, get = Job(plan, array, live), find()
        client = getattr(get, "__self__", None)
        if hasattr(client, "scatter"):
            check_workers(kwargs, client, bool(needy))
            return ClusterChunks(job, client, kwargs)
        return LocalChunks(job, get, kwargs)

    tally = None if reporter is None else Tally(work_of_run(recipe), reporter)
    return ProgressiveRun(
        live=live, abouts=abouts, known_aux=known_aux, start=start, tally=tally, watch=watch
    )


@forwards(IterOptions, prepare_run, run_udf)
def run_udf_iter(
    array: da.Array,
    udf: UDF | Sequence[UDF],
    *,
    sig_dims: int = 2,
    roi: Any = None,
    **options: Unpack[IterOptions],
) -> UDFIterator:
    """Run UDFs over a dask array and hand out their results while the run goes on.

    Parameters
    ----------
    array : dask.array.Array, shape (*nav, *sig)
        The data; any chunks will do. Signal axes are the last ones.
    udf : UDF, or list or tuple of UDF
        What to run; all UDFs share one pass over the data.
    sig_dims, roi, **options
        As in `run_udf`.
    plots : True, str, tuple, list or udfdask.plotting.LivePlot, optional
        What is drawn while the run goes on, a few times a second: True for all results that are
        images or lines; the name of a result; a pair ``(name, function)`` with a function of an
        array; a list of names and pairs, for several UDFs also a list of such lists; or a
        `LivePlot`, which has more options. In a notebook the picture is in the output of the cell,
        with an interactive matplotlib backend in a window, which may be closed.
    scheduler : str, callable, concurrent.futures.Executor or distributed.Client, optional
        As in `dask.compute`; by default the active client, the configured scheduler, or threads.
    progress : bool, callable or ProgressReporter
        Show a bar that counts the frames and bytes of merged chunks, or tell somebody else about
        them, as in `udfdask.compute`.
    **kwargs
        Passed on to the scheduler: num_workers, pool; on a cluster resources, priority, retries.

    Returns
    -------
    UDFIterator
        Yields a `Snapshot` after each merged chunk, the last one with the results of `run_udf`;
        exactly one for an empty region of interest. Nothing runs before the first is asked for.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If an argument, or what a UDF declares, cannot be; each also is a TypeError or ValueError.
        If there is a keyword argument that no scheduler takes. When the first snapshot is asked
        for: if a cluster has none of the `workers` that are asked for.
    UDFError
        As `run_udf` does.
    ClusterError
        When a snapshot is asked for: as in `udfdask.compute`.
    DeviceError
        If a UDF needs a CUDA device, and there is none, as in `udfdask.compute`; on a cluster when
        the first snapshot is asked for, or later.
    ImportError
        If there are `plots`, and matplotlib is not installed.

    Warns
    -----
    UDFWarning
        If a task needs much memory; if a live plot cannot go on; if workers with a CUDA device are
        waited for.

    See Also
    --------
    run_udf : The same, lazily and all at once.

    Notes
    -----
    Chunks are merged as they come, or in navigation order where a UDF's merge depends on it: its
    own `merge` with nav buffers among others, without `merge_assigns_nav`; a `merge_all`. A UDF
    with both is merged by `merge` here. `merge_all` is called on its own result and the next
    chunk; with ``split_every=False``, on all chunks so far when a snapshot is read.

    A few chunks for each worker thread are computed ahead of the snapshot at hand.

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
    check_iter_options(run_udf_iter, options)
    check_is_array(array, "run_udf_iter")
    run = prepare_run(array, udf, sig_dims=sig_dims, roi=roi, **options)
    return UDFIterator(run, lambda snapshot: snapshot)


def _drawing(plots: Any, abouts: Sequence[About]) -> Callable[[Snapshot], object] | None:
    """Return what draws snapshots, or None; what is to be drawn is checked now."""
    from udfdask.plotting.live import as_live_plot

    live_plot = as_live_plot(plots, abouts)
    return None if live_plot is None else live_plot.update


def _scheduler(scheduler: Any, array: da.Array, needy: Sequence[str]) -> Callable[[], Any]:
    """Return a function that gives the scheduler's `get`, decided now where that can be.

    Raise if it is one of this machine, which lacks the device that UDFs need.
    """

    def find() -> Any:
        return base.get_scheduler(scheduler=scheduler, collections=[array])

    try:
        get = find()
    except RuntimeError:
        # an asynchronous client in its event loop; `async for` asks again from another thread
        return find
    check_device(get, needy)
    return lambda: get
