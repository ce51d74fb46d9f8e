"""Draw the results of a run repeatedly during the run."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from udfdask.errors import UDFWarning
from udfdask.plotting.choose import Choice, choose
from udfdask.plotting.colors import check_colors
from udfdask.plotting.displays import Screen, figure_class
from udfdask.plotting.panels import Described
from udfdask.plotting.static import draw, figure_size

if TYPE_CHECKING:
    from udfdask.plotting.displays import Figure

_PAUSE = 4.0  # pause 4 times the drawing time: drawing takes at most a fifth of the time


class LivePlot:
    """Draw the results of a progressive run during the run, in one figure.

    Pass it as `plots` to `run_udf_iter`, which then draws the snapshots, or call `update` with
    snapshots yourself. With an interactive matplotlib backend, the figure is shown in a window; in
    a notebook, in the output of the cell; otherwise it is only made, and you can save it. Positions
    without results have a light color of their own. If you close the window, the run goes on.

    Parameters
    ----------
    plots : True, str, tuple or list
        The results to draw: True for all that can be drawn; the name of a result; a pair
        ``(name, function)`` with a function of an array, which is NaN where there are no results
        yet; or a list of names and pairs. A name selects the results with this name of all UDFs.
    log : bool, optional
        Logarithmic scale for all results, or for none; by default for images of kind sig.
    vmin, vmax, cmap : optional
        Limits and colors of all panels, as in `Result.plot`.
    interval : float
        Minimum time between two drawings, in seconds. If drawing is slow, the time is longer, so
        that drawing takes at most a fifth of the run time.

    Examples
    --------
    >>> import dask.array as da, udfdask as ud
    >>> from udfdask.plotting import LivePlot
    >>> from udfdask.udfs import SumSigUDF
    >>> x = da.ones((4, 6, 8, 8), chunks=(1, 6, 8, 8))
    >>> live = LivePlot("intensity")
    >>> for snapshot in ud.run_udf_iter(x, SumSigUDF(), plots=live):
    ...     pass
    >>> live.figure.get_suptitle()
    'SumSigUDF: 4 of 4 chunks'
    """

    def __init__(
        self,
        plots: Any = True,
        *,
        log: bool | None = None,
        vmin: float | None = None,
        vmax: float | None = None,
        cmap: Any = None,
        interval: float = 0.3,
    ) -> None:
        self._plots = plots
        self._log = log
        self._look = {"vmin": vmin, "vmax": vmax, "cmap": cmap}
        self._interval = float(interval)
        self._choices: tuple[Choice, ...] | None = None
        self._name = ""
        self._screen: Screen | None = None
        self._not_before = 0.0
        self._has_failed = False

    @property
    def figure(self) -> Figure | None:
        """The matplotlib figure; None before the first drawing."""
        return None if self._screen is None else self._screen.figure

    def _prepare(self, results: Sequence[Described]) -> None:
        """Check, before a run, that the results of each UDF can be drawn as requested."""
        figure_class()
        self._look = check_colors(**self._look)
        self._choices = choose(self._plots, results)
        self._name = ", ".join(one.name or one.udf_name for one in results)
        self._not_before, self._has_failed = 0.0, False
        if self._is_closed:
            self._screen = None

    def update(self, snapshot: Any) -> bool:
        """Draw a snapshot, unless the last drawing was very recent; always draw the last snapshot.

        If drawing fails, there is a `UDFWarning` and no more drawing; the run goes on.

        Parameters
        ----------
        snapshot : Snapshot
            The results so far.

        Returns
        -------
        bool
            Whether the snapshot was drawn.

        Raises
        ------
        ArgumentTypeError, ArgumentValueError
            If the snapshot does not contain the requested results.

        Warns
        -----
        UDFWarning
            If drawing fails.

        Examples
        --------
        >>> import dask.array as da, udfdask as ud
        >>> from udfdask.plotting import LivePlot
        >>> from udfdask.udfs import SumUDF
        >>> live = LivePlot(log=False, interval=0)
        >>> for snapshot in ud.run_udf_iter(da.ones((4, 6, 8, 8)), SumUDF()):
        ...     live.update(snapshot)
        True
        """
        if self._choices is None:
            self._prepare([result._info for result in snapshot.buffers])
        is_last = snapshot.n_merged == snapshot.n_chunks
        start = time.monotonic()
        if self._has_failed or self._is_closed or (start < self._not_before and not is_last):
            return False
        try:
            self._draw(snapshot)
        except Exception as error:  # noqa: BLE001  # a picture must not end a long run
            self._has_failed = True
            if not self._is_closed:  # the user can close the window during the drawing
                warnings.warn(
                    "the live plot is not updated any more, but the run goes on: "
                    f"{type(error).__name__}: {error}",
                    UDFWarning,
                    stacklevel=3,
                )
            return False
        end = time.monotonic()
        self._not_before = end + max(self._interval, _PAUSE * (end - start))
        return True

    @property
    def _is_closed(self) -> bool:
        """Whether the user has closed the window."""
        return self._screen is not None and self._screen.is_closed

    def _draw(self, snapshot: Any) -> None:
        """Draw a snapshot now."""
        title = f"{self._name}: {snapshot.n_merged} of {snapshot.n_chunks} chunks"
        panels = [
            panel
            for choice in self._choices or ()
            for result in [snapshot.buffers[choice.udf]]
            for panel in choice.panels(
                result[choice.name], result.valid_mask[choice.name], log=self._log, **self._look
            )
        ]
        if self._screen is None:
            self._screen = Screen(figure_size(panels, title=title))
        draw(panels, title=title, figure=self._screen.figure)
        self._screen.show()


def as_live_plot(plots: Any, results: Sequence[Described]) -> LivePlot | None:
    """Return the argument `plots` as a live plot, checked against the results, or None."""
    if plots is None or plots is False:
        return None
    live = plots if isinstance(plots, LivePlot) else LivePlot(plots)
    live._prepare(results)
    return live
