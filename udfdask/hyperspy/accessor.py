"""The accessor ``udf`` of HyperSpy's signals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias, Unpack, overload

from hyperspy.api import signals
from hyperspy.roi import BaseROI
from hyperspy.signal import BaseSignal

from udfdask.base.tracebacks import own_lines_hidden
from udfdask.explanation.describe import Explanation
from udfdask.geometry.roi import Region
from udfdask.hyperspy.data import arrange, read_parameters, wants_progressbar
from udfdask.hyperspy.make_signal import (
    make_mapped,
    make_nav_signal,
    read_labels,
)
from udfdask.hyperspy.results import SignalResult
from udfdask.results.result import Result
from udfdask.run.map_frames import MapOptions, call_of, make_frame_udf, name_of_map
from udfdask.run.map_frames import map_frames as map_on_array
from udfdask.run.options import IterOptions, RunOptions, check_names, forwards
from udfdask.run.progressive import ArraySnapshot, Snapshot, UDFIterator
from udfdask.run.progressive import run_udf_iter as iterate_on_array
from udfdask.run.run_udf import in_form_of
from udfdask.run.run_udf import run_udf as run_on_array
from udfdask.scheduling.compute import check_options, compute
from udfdask.udf import UDF

SignalRegion: TypeAlias = BaseSignal | BaseROI | Region


class SignalOptions(RunOptions, total=False):
    """All options of `run_udf`."""

    roi: SignalRegion | None
    lazy_output: bool | None
    show_progressbar: bool | None


class UDFAccessor:
    """Runs UDFs over a HyperSpy signal, as ``signal.udf``.

    The navigation axes of the signal are those of the scan; its signal axes are those of a frame.
    Results are signals with the axes, units and metadata of the input signal.

    Parameters
    ----------
    signal : BaseSignal
        A lazy signal with any chunks, or a signal in memory.

    Examples
    --------
    >>> import hyperspy.api as hs, numpy as np, udfdask.hyperspy
    >>> from udfdask.udfs import SumSigUDF, SumUDF
    >>> s = hs.signals.Signal1D(np.ones((2, 3, 100))).as_lazy()
    >>> spectrum, image = s.udf.run_udf([SumUDF(), SumSigUDF()])
    >>> spectrum["intensity"], image["intensity"].T
    (<LazySignal1D, title: intensity, dimensions: (|100)>,
     <LazySignal2D, title: intensity, dimensions: (|3, 2)>)
    """

    __slots__ = ("_signal",)

    def __init__(self, signal: Any) -> None:
        self._signal = signal

    def __repr__(self) -> str:
        return f"<UDFAccessor of {self._signal!r}>"

    def _run(
        self,
        udf: Any,
        roi: SignalRegion | None,
        lazy_output: bool | None,
        show_progressbar: bool | None,
        options: Mapping[str, Any],
    ) -> tuple[Result, ...]:
        """Return the results of each UDF; compute them in one pass unless they stay lazy."""
        lazy = bool(self._signal._lazy if lazy_output is None else lazy_output)
        results = arrange(self._signal, roi, named=lazy).run(udf, options)
        if lazy:
            return results
        with own_lines_hidden:
            return compute(*results, progress=wants_progressbar(show_progressbar))

    @overload
    def run_udf(self, udf: UDF, **options: Unpack[SignalOptions]) -> SignalResult: ...
    @overload
    def run_udf(
        self, udf: Sequence[UDF], **options: Unpack[SignalOptions]
    ) -> tuple[SignalResult, ...]: ...
    @overload
    def run_udf(
        self, udf: Mapping[str, UDF], **options: Unpack[SignalOptions]
    ) -> dict[str, SignalResult]: ...
    @forwards(RunOptions, run_on_array)
    def run_udf(
        self,
        udf: UDF | Sequence[UDF] | Mapping[str, UDF],
        *,
        roi: SignalRegion | None = None,
        lazy_output: bool | None = None,
        show_progressbar: bool | None = None,
        **options: Unpack[RunOptions],
    ) -> SignalResult | tuple[SignalResult, ...] | dict[str, SignalResult]:
        """Run one UDF, or several in one pass, over the signal.

        Parameters
        ----------
        udf : UDF, or list, tuple or dict of UDF
            The UDFs to run. All UDFs of a list or dictionary share one pass over the data.
        roi : BaseSignal of bool, HyperSpy ROI, or array-like, optional
            The positions to process: a signal in memory with the navigation axes, such as
            ``s.sum("sig") > 5``; a ROI such as `hyperspy.api.roi.RectangularROI` in the units of
            the axes; or as in `udfdask.run_udf`, in the order of ``s.data``, (y, x).
        lazy_output : bool, optional
            Whether to return lazy signals; by default if the signal is lazy.
        show_progressbar : bool, optional
            Whether to show a progress bar; by default as set in HyperSpy's preferences. Lazy
            results are computed later: pass it to their `compute`.
        **options
            As in `udfdask.run_udf`; axes, unit and voltage are by default those of the signal.
            `descan` can be a signal, such as ``com["raw_shifts"]`` of a `CoMUDF`.

        Returns
        -------
        SignalResult, tuple of SignalResult or dict of SignalResult
            In the form of `udf`. Results of kind nav have the navigation axes, and their extra
            dimensions as signal axes. Results of kind sig have the signal axes and the class of the
            signal, and their extra dimensions as navigation axes.

        Raises
        ------
        UDFError
            As in `udfdask.run_udf`, or if the signal has no frames of one shape.

        Examples
        --------
        >>> import hyperspy.api as hs, numpy as np, udfdask.hyperspy
        >>> from udfdask.udfs import SumUDF
        >>> s = hs.signals.Signal2D(np.ones((2, 3, 4, 5))).as_lazy()
        >>> mask = s.sum("sig") > 5
        >>> mask.compute(show_progressbar=False)  # in place
        >>> total = s.udf.run_udf(SumUDF(), roi=mask)["intensity"]
        """
        check_names(self.run_udf, options)
        results = self._run(udf, roi, lazy_output, show_progressbar, options)
        labels = read_labels(self._signal)
        return in_form_of(udf, tuple(SignalResult(one, labels.of(one.name)) for one in results))

    @overload
    def map_frames(
        self, func: Callable[..., Any], *, output_names: Sequence[str], **kwargs: Any
    ) -> SignalResult: ...
    @overload
    def map_frames(
        self, func: Callable[..., Any], *, output_names: None = ..., **kwargs: Any
    ) -> BaseSignal: ...
    @forwards(MapOptions, map_on_array)
    def map_frames(
        self,
        func: Callable[..., Any],
        *,
        roi: SignalRegion | None = None,
        lazy_output: bool | None = None,
        show_progressbar: bool | None = None,
        **kwargs: Any,
    ) -> BaseSignal | SignalResult:
        """Call a function with every frame, as ``s.map(func, inplace=False)`` does.

        Parameters
        ----------
        func : callable
            Called as ``func(frame, **kwargs)``, as in `udfdask.map_frames`.
        roi, lazy_output, show_progressbar
            As in `run_udf`.
        output_shape, output_dtype, ragged, output_names, backends
            As in `udfdask.map_frames`.
        **kwargs
            Parameters of `func`; of a signal with the same navigation axes, `func` gets the value
            at its frame.

        Returns
        -------
        BaseSignal or SignalResult
            With the navigation axes and, if `func` returns frames of the same shape, the signal
            axes and the class of the signal. With `output_names`, a mapping from them to signals.

        Raises
        ------
        UDFError
            As in `udfdask.map_frames`, or if a parameter is a signal with other navigation axes.

        Examples
        --------
        >>> import hyperspy.api as hs, numpy as np, udfdask.hyperspy
        >>> s = hs.signals.Signal2D(np.ones((2, 3, 4, 5))).as_lazy()
        >>> s.udf.map_frames(np.sum, axis=0)
        <LazySignal1D, title: sum, dimensions: (3, 2|5)>
        """
        parameters = read_parameters(self._signal, kwargs)
        udf = make_frame_udf(self.map_frames, func, locals(), parameters)
        (result,) = self._run({call_of(func): udf}, roi, lazy_output, show_progressbar, {})
        labels = read_labels(self._signal)
        name = name_of_map(func)
        if kwargs.get("output_names") is not None:
            return SignalResult(result._called(name), labels)
        return make_mapped(result["result"], result.extra_axes["result"], name, labels)

    @forwards(IterOptions, run_udf, iterate_on_array)
    def run_udf_iter(
        self,
        udf: UDF | Sequence[UDF] | Mapping[str, UDF],
        *,
        roi: SignalRegion | None = None,
        **options: Unpack[IterOptions],
    ) -> UDFIterator[SignalResult, BaseSignal]:
        """Run UDFs over the signal and yield intermediate results.

        Parameters
        ----------
        udf, roi
            As in `run_udf`.
        **options
            As in `udfdask.run_udf_iter`.

        Returns
        -------
        UDFIterator
            Yields a `Snapshot` after each merged chunk: its `buffers` are `SignalResult`, in
            memory, and `damage` is a navigation signal.

        Raises
        ------
        UDFError
            As in `run_udf`.

        Examples
        --------
        >>> import dask.array as da, hyperspy.api as hs, udfdask.hyperspy
        >>> from udfdask.udfs import SumUDF
        >>> s = hs.signals.Signal2D(da.ones((2, 3, 4, 5), chunks=(1, 3, 4, 5))).as_lazy()
        >>> for snapshot in s.udf.run_udf_iter(SumUDF()):
        ...     snapshot.buffers[0]["intensity"].data[0, 0]
        np.float64(3.0)
        np.float64(6.0)
        """
        check_options(self.run_udf_iter, options, options.get("scheduler"))
        run, labels = arrange(self._signal, roi).iterate(udf, options), read_labels(self._signal)

        def label(plain: ArraySnapshot) -> Snapshot[SignalResult, BaseSignal]:
            def make(number: int) -> SignalResult:
                return SignalResult(plain.buffers[number], labels)

            return Snapshot(plain._state, make, partial(make_nav_signal, labels=labels))

        return UDFIterator(run, label)

    @forwards(RunOptions, run_udf)
    def explain(
        self,
        udf: UDF | Sequence[UDF] | Mapping[str, UDF],
        *,
        roi: SignalRegion | None = None,
        measure: bool = False,
        **options: Unpack[RunOptions],
    ) -> Explanation:
        """Describe what `run_udf` would do with the same arguments.

        Parameters
        ----------
        udf, roi
            As in `run_udf`.
        measure
            As in `udfdask.explain`.
        **options
            As in `run_udf`.

        Returns
        -------
        Explanation
            As of `udfdask.explain`.

        Raises
        ------
        UDFError
            As in `run_udf`.

        Examples
        --------
        >>> import hyperspy.api as hs, numpy as np, udfdask.hyperspy
        >>> from udfdask.udfs import SumUDF
        >>> hs.signals.Signal2D(np.ones((2, 3, 4, 5))).udf.explain(SumUDF()).bytes_read
        960
        """
        check_names(self.explain, options)
        return arrange(self._signal, roi).explain(udf, options, measure=measure)


class _AccessorAttribute:
    """The attribute `udf` of signals: HyperSpy has no registry of accessors."""

    def __get__(self, signal: Any, owner: type) -> Any:
        return UDFAccessor if signal is None else UDFAccessor(signal)


signals.BaseSignal.udf = _AccessorAttribute()
