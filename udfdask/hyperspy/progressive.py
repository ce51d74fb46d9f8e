"""Progressive runs over a signal: snapshots with signals."""

from __future__ import annotations

from typing import Any

from udfdask.hyperspy.make_signal import SignalLabels, make_nav_signal
from udfdask.hyperspy.results import SignalResult
from udfdask.run.progressive import Snapshot
from udfdask.run.progressive.iterator import SnapshotIterator
from udfdask.run.progressive.snapshot import BaseSnapshot


class SignalSnapshot(BaseSnapshot[SignalResult]):
    """The results of a run over the chunks that have been merged so far, as signals.

    A snapshot does not change while the run continues. ``signal.udf.run_udf_iter`` yields
    snapshots. `buffers` holds a `SignalResult` in memory for each UDF.

    Parameters
    ----------
    snapshot : Snapshot
        The same results as arrays.
    labels : SignalLabels
        Axes and metadata of the input signal.

    Examples
    --------
    >>> import dask.array as da, hyperspy.api as hs, udfdask.hyperspy
    >>> from udfdask.udfs import SumUDF
    >>> s = hs.signals.Signal2D(da.ones((2, 3, 4, 5), chunks=(1, 3, 4, 5))).as_lazy()
    >>> first, last = s.udf.run_udf_iter(SumUDF(), scheduler="synchronous")
    >>> first.damage.data.sum(), first.buffers[0]["intensity"].data[0, 0]
    (np.int64(3), np.float64(3.0))
    """

    __slots__ = ("_labels", "_snapshot")

    def __init__(self, snapshot: Snapshot, labels: SignalLabels) -> None:
        super().__init__(
            snapshot._state, lambda number: SignalResult(snapshot.buffers[number], labels)
        )
        self._snapshot = snapshot
        self._labels = labels

    @property
    def damage(self) -> Any:
        """Mask of the positions that have been processed, a navigation signal of booleans."""
        return make_nav_signal(self._snapshot.damage, self._labels)


class SignalIterator(SnapshotIterator[SignalSnapshot]):
    """Iterates over the snapshots of a run over a signal, one per merged chunk.

    It works like `UDFIterator`. ``signal.udf.run_udf_iter`` returns iterators.

    Examples
    --------
    >>> import dask.array as da, hyperspy.api as hs, udfdask.hyperspy
    >>> from udfdask.udfs import SumSigUDF
    >>> s = hs.signals.Signal2D(da.ones((4, 3, 2, 2), chunks=(1, 3, 2, 2))).as_lazy()
    >>> with s.udf.run_udf_iter(SumSigUDF(), scheduler="synchronous") as snapshots:
    ...     for snapshot in snapshots:
    ...         if snapshot.damage.data.sum() >= 6:
    ...             break
    >>> snapshot
    <SignalSnapshot of SumSigUDF: 2 of 4 chunks>
    """
