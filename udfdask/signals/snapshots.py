"""Runs over a signal that hand out signals while they go on."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Any, Self, overload

from udfdask.progressive import Snapshot, UDFIterator
from udfdask.signals.labels import SignalLabels
from udfdask.signals.making import make_nav_signal
from udfdask.signals.results import SignalResult


class SignalSnapshot:
    """The results of a run over the chunks that have been merged so far, as signals.

    What it holds does not change while the run goes on. Made by ``signal.udf.run_udf_iter``.

    Parameters
    ----------
    snapshot : Snapshot
        The same with arrays.
    labels : SignalLabels
        Axes and metadata of the signal that is processed.

    Attributes
    ----------
    buffers : sequence of SignalResult
        The results of each UDF, in memory, in the order of the call. Each is made when it is first
        read.
    damage : BaseSignal of bool
        Which positions have been processed; a navigation signal.
    n_chunks : int
        Number of chunks of the run.
    n_merged : int
        Number of chunks that have been merged.

    Examples
    --------
    >>> import dask.array as da, hyperspy.api as hs, udfdask.hyperspy
    >>> from udfdask.udfs import SumUDF
    >>> s = hs.signals.Signal2D(da.ones((2, 3, 4, 5), chunks=(1, 3, 4, 5))).as_lazy()
    >>> first, last = s.udf.run_udf_iter(SumUDF(), scheduler="synchronous")
    >>> first.damage.data.sum(), first.buffers[0]["intensity"].data[0, 0]
    (np.int64(3), np.float64(3.0))
    """

    __slots__ = ("_labels", "_results", "_snapshot")

    def __init__(self, snapshot: Snapshot, labels: SignalLabels) -> None:
        self._snapshot = snapshot
        self._labels = labels
        self._results = _Results(snapshot, labels)

    def __repr__(self) -> str:
        return repr(self._snapshot).replace("<Snapshot", "<SignalSnapshot", 1)

    @property
    def n_merged(self) -> int:
        """Number of chunks that have been merged."""
        return self._snapshot.n_merged

    @property
    def n_chunks(self) -> int:
        """Number of chunks of the run."""
        return self._snapshot.n_chunks

    @property
    def buffers(self) -> Sequence[SignalResult]:
        """The results of each UDF, in memory."""
        return self._results

    @property
    def damage(self) -> Any:
        """Which positions have been processed, a navigation signal of booleans."""
        return make_nav_signal(self._snapshot.damage, self._labels)


class _Results(Sequence[SignalResult]):
    """The results of a snapshot, each made when it is first asked for."""

    # refers to no snapshot of signals: the two would keep each other alive
    __slots__ = ("_labels", "_made", "_snapshot")

    def __init__(self, snapshot: Snapshot, labels: SignalLabels) -> None:
        self._snapshot = snapshot
        self._labels = labels
        self._made: dict[int, SignalResult] = {}

    def __len__(self) -> int:
        return len(self._snapshot.buffers)

    @overload
    def __getitem__(self, index: int) -> SignalResult: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[SignalResult]: ...
    def __getitem__(self, index: int | slice) -> SignalResult | Sequence[SignalResult]:
        numbers = range(len(self))[index]
        if isinstance(numbers, range):
            return tuple(self[number] for number in numbers)
        if numbers not in self._made:
            self._made[numbers] = SignalResult(self._snapshot.buffers[numbers], self._labels)
        return self._made[numbers]


class SignalIterator:
    """Iterates over the snapshots of a run over a signal; also `async for`.

    It behaves as `UDFIterator` does, with signals instead of arrays. Made by
    ``signal.udf.run_udf_iter``.

    Parameters
    ----------
    snapshots : UDFIterator
        The same with arrays.
    labels : SignalLabels
        Axes and metadata of the signal that is processed.

    Attributes
    ----------
    n_chunks : int
        Number of chunks of the run.
    n_merged : int
        Number of chunks that have been merged.

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

    def __init__(self, snapshots: UDFIterator, labels: SignalLabels) -> None:
        self._snapshots = snapshots
        self._labels = labels

    @property
    def n_chunks(self) -> int:
        """Number of chunks of the run."""
        return self._snapshots.n_chunks

    @property
    def n_merged(self) -> int:
        """Number of chunks that have been merged."""
        return self._snapshots.n_merged

    def __repr__(self) -> str:
        return repr(self._snapshots).replace("<UDFIterator", "<SignalIterator", 1)

    def update_parameters(self, changes: Sequence[Mapping[str, Any]]) -> None:
        """Change parameters from the next chunk on, as `UDFIterator.update_parameters` does.

        Parameters
        ----------
        changes : sequence of dict
            New values by name, one dictionary for each UDF; empty for one that stays as it is.

        Raises
        ------
        ArgumentValueError
            If there are more or fewer dictionaries than UDFs, a name is no parameter, or what the
            UDF declares would change. Nothing is changed then.
        ArgumentTypeError
            If this is no sequence of dictionaries, or a value is a dask collection.
        """
        self._snapshots.update_parameters(changes)

    def update_parameters_experimental(self, changes: Sequence[Mapping[str, Any]]) -> None:
        """Change parameters: LiberTEM's name of `update_parameters`.

        Parameters
        ----------
        changes : sequence of dict
            As in `update_parameters`.
        """
        self.update_parameters(changes)

    def close(self) -> None:
        """Stop the work, as `UDFIterator.close` does."""
        self._snapshots.close()

    async def aclose(self) -> None:
        """Stop the work, as `close` does."""
        await self._snapshots.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> SignalSnapshot:
        return SignalSnapshot(next(self._snapshots), self._labels)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SignalSnapshot:
        return SignalSnapshot(await self._snapshots.__anext__(), self._labels)

    def __await__(self) -> Generator[Any, None, SignalSnapshot | None]:
        return self._last().__await__()

    async def _last(self) -> SignalSnapshot | None:
        """Return the last snapshot."""
        last = await self._snapshots
        return None if last is None else SignalSnapshot(last, self._labels)
