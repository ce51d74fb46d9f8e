"""Runs that yield intermediate results: one snapshot per merged chunk.

A scheduler computes chunks (`chunks` on local ones, `cluster` on distributed ones). They are merged
in the thread of the consumer, so that a snapshot can be read after each merge (`snapshot`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

import dask.array as da
from dask import base

from udfdask.geometry.chunk_grid import BoolArray
from udfdask.geometry.roi import Region
from udfdask.plan.arguments import NAMES
from udfdask.plan.recipe import DESCAN
from udfdask.results.result import Result
from udfdask.run.options import DescribedData, IterOptions, Plots, Scheduler, forwards
from udfdask.run.progressive.chunks import Chunks, LocalChunks
from udfdask.run.progressive.iterator import UDFIterator
from udfdask.run.progressive.parameters import Align, LiveRecipe
from udfdask.run.progressive.snapshot import ArraySnapshot, Snapshot
from udfdask.run.run_udf import make_infos, plan_run, run_udf, show_warnings
from udfdask.scheduling.compute import check_options
from udfdask.scheduling.progress import work_of_recipe
from udfdask.scheduling.restrictions import check_workers
from udfdask.scheduling.run_log import RunLog, client_of, is_frisky
from udfdask.udf import UDF

if TYPE_CHECKING:
    from udfdask.results.result_array import ResultArray

__all__ = ["ArraySnapshot", "ProgressiveRun", "Snapshot", "UDFIterator", "run_udf_iter"]


class ProgressiveRun:
    """A run that is planned; nothing runs before the first snapshot is requested.

    `align` aligns changes of parameters with the data. `kwargs` are options of the run, among them
    the `door`, and of the scheduler.
    """

    def __init__(
        self,
        array: Any,
        udf: UDF | Sequence[UDF] | Mapping[str, UDF],
        *,
        plots: Plots = None,
        scheduler: Scheduler = None,
        align: Align | None = None,
        **kwargs: Any,
    ) -> None:
        chosen = {name: value for name, value in kwargs.items() if name in NAMES}
        self._options = {name: value for name, value in kwargs.items() if name not in NAMES}
        plan, array = plan_run(array, udf, caller="run_udf_iter", **chosen)
        self._plan, self._array = plan, array
        show_warnings(plan)
        self.live = LiveRecipe(plan.recipe, plan.parameters, plan.calibration, align)
        self.infos = make_infos(plan, udf)
        self.watch: Callable[[ArraySnapshot], object] | None = None
        """Called with each snapshot before it is handed out, in the thread that iterates."""
        if plots is not None:
            from udfdask.plotting.live import as_live_plot  # checks that the results can be drawn

            live_plot = as_live_plot(plots, self.infos)
            self.watch = None if live_plot is None else live_plot.update
        self.aux_values: list[dict[str, Any]] = [{} for _ in plan.recipe.udfs]
        """For each UDF the aux data that are known for all frames, shape (*nav, *extra_shape)."""
        for (number, name), values in zip(plan.recipe.aux_slots, plan.aux, strict=True):
            # UDFs and merges do not see shifts of frames
            if number != DESCAN and not base.is_dask_collection(values):
                self.aux_values[number][name] = values
        self._find_scheduler = _find_scheduler(scheduler, array)
        self.log = RunLog()

    def start(self) -> Chunks:
        """Return the source of computed chunks."""
        run, options = (self._plan, self._array, self.live), self._options
        get = self._find_scheduler()
        self.log.start("run_udf_iter", get, partial(work_of_recipe, self._plan.recipe))
        client = client_of(get)
        if client is None:
            return LocalChunks(*run, get, options)
        recipe = self._plan.recipe
        for_device = [udf.name for udf in recipe.udfs if recipe.grid.n_chunks and udf.needs_cuda]
        if is_frisky(client):
            from udfdask.run.progressive.on_frisky import FriskyChunks
            from udfdask.scheduling.frisky_run import check_anywhere

            check_anywhere([self._array.dask], options, for_device)
            return FriskyChunks(*run, client, options)
        check_workers(options, client, bool(for_device))
        from udfdask.run.progressive.on_distributed import DistributedChunks  # is optional

        return DistributedChunks(*run, client, options)


@forwards(IterOptions, run_udf, ProgressiveRun)
def run_udf_iter(
    array: da.Array | DescribedData,
    udf: UDF | Sequence[UDF] | Mapping[str, UDF],
    *,
    sig_dims: int | None = None,
    roi: Region | None = None,
    **options: Unpack[IterOptions],
) -> UDFIterator[Result[ResultArray], BoolArray]:
    """Run UDFs over a dask array and yield intermediate results.

    Parameters
    ----------
    array, udf, sig_dims, roi, **options
        As in `run_udf`.
    plots : True, str, tuple, list or udfdask.plotting.LivePlot, optional
        The results to draw during the run, as in `LivePlot`, or a `LivePlot` with more options.
    scheduler : str, callable, concurrent.futures.Executor or distributed.Client, optional
        As in `dask.compute`; by default the active client, the configured scheduler, or threads.
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
    Chunks are merged in the order in which they finish, or in navigation order if the order can
    matter: for `merge_all`, and for a UDF with its own `merge` that has nav buffers together with
    other buffers, unless it only assigns them. If a UDF has both, `merge` is used.
    `merge_all` is called on its last result and the next chunk, or, with ``split_every=False``, on
    all chunks so far each time a snapshot is read.

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
    run = ProgressiveRun(array, udf, sig_dims=sig_dims, roi=roi, **options)
    return UDFIterator(run, lambda plain: plain)


def _find_scheduler(scheduler: Scheduler, array: da.Array) -> Callable[[], Any]:
    """Return a function that returns the `get` of the scheduler, chosen now if possible."""

    def find() -> Any:
        return base.get_scheduler(scheduler=scheduler, collections=[array])

    try:
        get = find()
    except RuntimeError:
        # an asynchronous client in its event loop; `async for` calls `find` from another thread
        return find
    return lambda: get
