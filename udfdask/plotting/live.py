"""Live plots: the results of a run drawn again and again while it goes on."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from numbers import Real
from typing import Any

from udfdask.arrays.geometry.axes import Axis
from udfdask.errors import ArgumentTypeError, ArgumentValueError, UDFWarning
from udfdask.plotting.choose import Choice, choose
from udfdask.plotting.displays import Screen, open_screen
from udfdask.plotting.labels import Described
from udfdask.plotting.panels import Panel
from udfdask.plotting.static import draw, figure_classes, figure_size

_PAUSE = 4.0  # times as long as a drawing took: at most a fifth of the time is spent on drawing


class LivePlot:
    """Draws the results of a progressive run while it goes on, side by side.

    Pass it as `plots` to `run_udf_iter`, which then draws by itself, or call `update` with
    snapshots. With an interactive matplotlib backend there is a window, in a notebook a picture in
    the output of the cell; else the figure is only made, to be saved. What has no results yet has a
    light color of its own. The window may be closed: the run goes on.

    Parameters
    ----------
    plots : True, str, tuple or list
        What is drawn: True for all results that can be; the name of a result; a pair
        ``(name, function)`` with a function of an array in data set shape, NaN where there are no
        results yet; a list of names and pairs; or for several UDFs a list of such lists. A name
        alone means the results of all UDFs that have one of this name.
    axes : sequence of Axis, optional
        Names, scales and units: one axis per dimension of the data, ``(*nav, *sig)``. By default
        pixels are counted.
    log : bool, optional
        Logarithmic scale for all, or for none; by default for images of kind sig.
    interval : float
        Shortest time from one drawing to the next, in seconds; it is longer where drawing takes
        long, so that no more than a fifth of the time goes into it.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If an argument cannot be.

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
        axes: Sequence[Axis] | None = None,
        log: bool | None = None,
        interval: float = 0.3,
    ) -> None:
        self._plots = plots
        self._axes = axes
        self._log = check_log(log)
        self._interval = _seconds(interval)
        self._choices: tuple[Choice, ...] | None = None
        self._name = ""
        self._screen: Screen | None = None
        self._not_before = 0.0
        self._has_failed = False

    @property
    def figure(self) -> Any:
        """The matplotlib figure, None before the first drawing."""
        return None if self._screen is None else self._screen.figure

    def prepare(self, results: Sequence[Described]) -> None:
        """Check what is to be drawn against the results of each UDF, before a run.

        Parameters
        ----------
        results : sequence of Result
            The results of each UDF, lazy ones too; no values are looked at.

        Raises
        ------
        ArgumentTypeError, ArgumentValueError
            If there is no such result, or it cannot be drawn.
        ImportError
            If matplotlib is not installed.

        Examples
        --------
        >>> import dask.array as da, udfdask as ud
        >>> from udfdask.plotting import LivePlot
        >>> from udfdask.udfs import SumUDF
        >>> LivePlot("intensity").prepare([ud.run_udf(da.ones((4, 6, 8, 8)), SumUDF())])
        """
        figure_classes()
        self._choices = choose(self._plots, results, self._axes)
        self._name = ", ".join(one.udf_name for one in results)
        self._not_before, self._has_failed = 0.0, False
        if self._screen is not None and self._screen.is_closed:
            self._screen = None

    def update(self, snapshot: Any) -> bool:
        """Draw a snapshot, unless the last drawing was only just now; always the last one.

        An error in drawing ends the drawing with a `UDFWarning`, not the run.

        Parameters
        ----------
        snapshot : Snapshot
            What there is so far.

        Returns
        -------
        bool
            Whether it was drawn.

        Raises
        ------
        ArgumentTypeError, ArgumentValueError
            If what is to be drawn, not yet checked by `prepare`, is not in the snapshot.

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
            self.prepare(snapshot.buffers)
        is_last = snapshot.n_merged == snapshot.n_chunks
        if self._has_failed or (self._screen is not None and self._screen.is_closed):
            return False
        if time.monotonic() < self._not_before and not is_last:
            return False
        try:
            seconds = self._draw(snapshot)
        except Exception as error:  # noqa: BLE001  # a picture must not end a run of hours
            self._has_failed = True
            if self._screen is not None and self._screen.is_closed:
                return False  # in the middle of it
            warnings.warn(
                f"the live plot stays as it is, the run goes on: {type(error).__name__}: {error}",
                UDFWarning,
                stacklevel=3,
            )
            return False
        self._not_before = time.monotonic() + max(self._interval, _PAUSE * seconds)
        return True

    def _draw(self, snapshot: Any) -> float:
        """Draw a snapshot now; return how long that took, in seconds."""
        start = time.monotonic()
        title = f"{self._name}: {snapshot.n_merged} of {snapshot.n_chunks} chunks"
        panels = self._panels(snapshot)
        if self._screen is None:
            self._screen = open_screen(figure_size(panels, title=title))
            start = time.monotonic()  # a window opens once
        draw(panels, title=title, figure=self._screen.figure)
        self._screen.show()
        return time.monotonic() - start

    def _panels(self, snapshot: Any) -> list[Panel]:
        """Return the panels of a snapshot."""
        assert self._choices is not None
        panels: list[Panel] = []
        for choice in self._choices:
            result = snapshot.buffers[choice.udf]
            values, valid = result[choice.name], result.valid_mask[choice.name]
            panels += choice.panels(values, valid, log=self._log)
        return panels


def as_live_plot(plots: Any, results: Sequence[Described]) -> LivePlot | None:
    """Take the argument `plots` and the results of each UDF; return a checked plot, or None."""
    if plots is None or plots is False:
        return None
    live = plots if isinstance(plots, LivePlot) else LivePlot(plots)
    live.prepare(results)
    return live


def check_log(log: Any) -> bool | None:
    """Take the argument `log`; return it, or raise."""
    if log is None or log is True or log is False:
        return log
    raise ArgumentTypeError(f"log must be True, False or None, got {log!r}")


def _seconds(interval: Any) -> float:
    """Take the argument `interval`; return it, or raise."""
    if isinstance(interval, bool) or not isinstance(interval, Real):
        raise ArgumentTypeError(f"interval must be a number of seconds, got {interval!r}")
    seconds = float(interval)
    if not seconds >= 0:
        raise ArgumentValueError(f"interval must be at least 0 seconds, got {interval!r}")
    return seconds
