"""The results of a UDF as signals."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import dask.array as da
import numpy as np
from dask.base import tokenize
from hyperspy.api import signals
from hyperspy.signal import BaseSignal

from udfdask.base.tracebacks import own_lines_hidden
from udfdask.hyperspy.data import wants_progressbar
from udfdask.hyperspy.make_signal import SignalLabels, copied_axes, make_signal
from udfdask.hyperspy.regions import read_mask
from udfdask.results.named_results import Lookup, NamedResults
from udfdask.results.result import Result
from udfdask.run.read_masks import read_detectors
from udfdask.scheduling.compute import compute as compute_signals
from udfdask.scheduling.compute import unwrap

if TYPE_CHECKING:
    from udfdask.results.outputs import Figure


class SignalResult(NamedResults[BaseSignal]):
    """The results of one UDF: a mapping from their names to HyperSpy signals.

    A lazy mapping holds lazy signals and is a dask collection: `udfdask.compute` and `dask.compute`
    take it. ``signal.udf.run_udf`` returns it.

    Parameters
    ----------
    result : Result
        The results as arrays.
    labels : SignalLabels
        Axes and metadata of the input signal.

    Examples
    --------
    >>> import hyperspy.api as hs, numpy as np, udfdask.hyperspy
    >>> from udfdask.udfs import SumUDF
    >>> s = hs.signals.Signal2D(np.ones((2, 3, 4, 5), dtype="uint8")).as_lazy()
    >>> res = s.udf.run_udf(SumUDF())
    >>> res
    <SignalResult of SumUDF, lazy>
      intensity: <LazySignal2D, title: intensity, dimensions: (|5, 4)>
    >>> res.compute(show_progressbar=False)["intensity"].data[0]
    array([6, 6, 6, 6, 6])
    """

    __slots__ = ("_labels", "_result", "_signals")

    def __init__(self, result: Result, labels: SignalLabels) -> None:
        super().__init__(result._info)
        self._result = result
        self._labels = labels
        self._signals: dict[str, Any] = {}

    def __getitem__(self, name: str) -> BaseSignal:
        if name not in self._signals:
            self._signals[name] = self._make(name, self._result, is_mask=False)
        return self._signals[name]

    def __reduce__(self) -> tuple[Any, ...]:
        return (SignalResult, (self._result, self._labels))

    def _text_of(self, name: str) -> str:
        return repr(self[name])

    @property
    def result(self) -> Result:
        """The results as arrays: ``.raw`` with flattened navigation, ``.masked``, ``.buffers``."""
        return self._result

    @property
    def valid_mask(self) -> Mapping[str, BaseSignal]:
        """A boolean signal for each result, True at valid values."""
        masks = self._result.valid_mask
        return Lookup(self, lambda name: self._make(name, masks, is_mask=True))

    def compute(self, show_progressbar: bool | None = None, **kwargs: Any) -> SignalResult:
        """Compute all results in one pass over the data.

        Unlike `BaseSignal.compute`, this method does not change the lazy signals.

        Parameters
        ----------
        show_progressbar : bool, optional
            Whether to show a progress bar; by default as set in HyperSpy's preferences.
        **kwargs
            Arguments of `udfdask.compute`, also `progress` in place of `show_progressbar`.

        Returns
        -------
        SignalResult
            The same results with signals in memory.

        Raises
        ------
        UDFError
            As in `udfdask.compute`.

        Examples
        --------
        >>> import hyperspy.api as hs, numpy as np, udfdask.hyperspy
        >>> from udfdask.udfs import SumSigUDF
        >>> s = hs.signals.Signal2D(np.ones((2, 3, 4, 5))).as_lazy()
        >>> s.udf.run_udf(SumSigUDF()).compute(show_progressbar=False)["intensity"]
        <BaseSignal, title: intensity, dimensions: (3, 2|)>
        """
        shown: dict[str, Any] = {}
        if show_progressbar is not None or "progress" not in kwargs:
            shown["progress"] = wants_progressbar(show_progressbar)
        with own_lines_hidden:
            (done,) = compute_signals(self, **shown, **kwargs)
        assert isinstance(done, SignalResult)
        return done

    def plot(self, names: Any = None, **options: Any) -> Figure:
        """Draw results side by side, as `udfdask.Result.plot` does, over the axes of the signal.

        To draw one result with HyperSpy, call ``result[name].plot()``.

        Parameters
        ----------
        names, **options
            As in `udfdask.Result.plot`.

        Returns
        -------
        matplotlib.figure.Figure
            As in `udfdask.Result.plot`.

        Examples
        --------
        >>> import hyperspy.api as hs, numpy as np, udfdask.hyperspy
        >>> from udfdask.udfs import SumUDF
        >>> s = hs.signals.Signal2D(np.ones((2, 3, 4, 5))).as_lazy()
        >>> s.axes_manager[2].name, s.axes_manager[2].units = "kx", "1/nm"
        >>> s.udf.run_udf(SumUDF()).plot().axes[0].get_xlabel()
        'kx (1/nm)'
        """
        with own_lines_hidden:
            return self._result.plot(names, **options)

    def plot_detectors(self, detectors: Any, name: str | None = None, **options: Any) -> Figure:
        """Draw detectors over a pattern or a spectrum, as `udfdask.Result.plot_detectors` does.

        Parameters
        ----------
        detectors : UDF, HyperSpy ROI, BaseSignal, array of bool, list or dict
            UDFs over the same signal, such as `VirtualDetectorUDF`, ROIs in the units of the signal
            axes, or masks of the shape of a frame. A dictionary gives their names in the legend.
        name, **options
            As in `udfdask.Result.plot_detectors`.

        Returns
        -------
        matplotlib.figure.Figure
            As in `plot`.

        Raises
        ------
        UDFError
            As in `udfdask.Result.plot_detectors`.

        Examples
        --------
        >>> import hyperspy.api as hs, numpy as np, udfdask.hyperspy
        >>> from udfdask.udfs import SumUDF, VirtualDetectorUDF
        >>> s = hs.signals.Signal2D(np.ones((2, 3, 16, 16))).as_lazy()
        >>> total = s.udf.run_udf(SumUDF())
        >>> figure = total.plot_detectors({"BF": VirtualDetectorUDF(r=3)})
        >>> [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
        ['BF']
        """
        with own_lines_hidden:
            given = read_detectors(detectors, partial(read_mask, self._frame()))
            return self._result.plot_detectors(given, name, **options)

    def _frame(self) -> Any:
        """Return a signal with the signal axes of the input and no data of its own."""
        axes = copied_axes(self._labels.sig_axes, navigate=False)
        return signals.BaseSignal(np.broadcast_to(0.0, self._labels.sig_shape), axes=axes)

    def _make(self, name: str, arrays: Mapping[str, Any], *, is_mask: bool) -> Any:
        """Return a result, or its mask, as a signal."""
        place = self._info.place_of(name)
        return make_signal(arrays[name], self._info, place, name, self._labels, is_mask=is_mask)

    # The dask collection protocol.

    def __dask_graph__(self) -> Any:
        return self._result.__dask_graph__()

    def __dask_keys__(self) -> list[Any]:
        return self._result.__dask_keys__()

    def __dask_layers__(self) -> tuple[str, ...]:
        return self._result.__dask_layers__()

    def __dask_tokenize__(self) -> Any:
        return ("udfdask.SignalResult", tokenize(self._result), self._labels)

    def __dask_postcompute__(self) -> tuple[Callable[..., SignalResult], tuple[Any, ...]]:
        return _labeled, (self._labels, *self._result.__dask_postcompute__())

    def __dask_postpersist__(self) -> tuple[Callable[..., SignalResult], tuple[Any, ...]]:
        return _labeled, (self._labels, *self._result.__dask_postpersist__())


def _labeled(
    made: Any, labels: SignalLabels, rebuild: Callable[..., Result], state: Any, **options: Any
) -> SignalResult:
    """Return what `rebuild` makes of values or of a graph, as signals."""
    return SignalResult(rebuild(made, *state, **options), labels)


@unwrap.register
def _open(result: SignalResult) -> tuple[Result, Callable[[Result], SignalResult]]:
    """Give `udfdask.compute` only the arrays: metadata, often large, are not sent to a cluster."""
    bare = result.result
    return bare, lambda done: result if done is bare else SignalResult(done, result._labels)


@unwrap.register(signals.BaseSignal)
def _open_signal(signal: Any) -> tuple[Any, Callable[[Any], Any]]:
    """Return the array that dask computes for a signal, and a function that restores the signal.

    A signal in memory is returned unchanged. dask must not get it: it would iterate over it without
    end.
    """
    if not isinstance(signal.data, da.Array):
        return None, lambda _: signal
    return signal.data, lambda data: _with_data(signal, data)


def _with_data(signal: Any, data: Any) -> Any:
    """Return a copy of a signal with other data: lazy if these are lazy, else in memory."""
    made = signal.deepcopy()
    made.data = data
    if made._lazy and not isinstance(data, da.Array):
        made.compute(show_progressbar=False)  # computes nothing, only changes the class
    return made
