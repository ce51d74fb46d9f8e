"""Progressive runs whose snapshots get labels on their way out: what all doors share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping, Sequence
from typing import Any, Generic, Self, TypeVar

from udfdask.run.progressive.iterator import UDFIterator
from udfdask.run.progressive.snapshot import Snapshot

T = TypeVar("T")


class LabellingIterator(ABC, Generic[T]):
    """Does what a `UDFIterator` does, and hands out labelled snapshots of one kind."""

    def __init__(self, snapshots: UDFIterator) -> None:
        self._snapshots = snapshots

    @abstractmethod
    def _labelled(self, snapshot: Snapshot) -> T:
        """Return a snapshot with labels."""

    @property
    def n_chunks(self) -> int:
        """Number of chunks of the run."""
        return self._snapshots.n_chunks

    @property
    def n_merged(self) -> int:
        """Number of chunks that have been merged."""
        return self._snapshots.n_merged

    def __repr__(self) -> str:
        return repr(self._snapshots).replace("<UDFIterator", f"<{type(self).__name__}", 1)

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
        """Stop the work: tasks that run may finish, nothing new starts."""
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

    def __next__(self) -> T:
        return self._labelled(next(self._snapshots))

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        return self._labelled(await anext(self._snapshots))

    def __await__(self) -> Generator[Any, None, T | None]:
        last = yield from self._snapshots.__await__()
        return None if last is None else self._labelled(last)
