"""The task behind every output and merge, and how dask weighs what tasks hand on."""

from __future__ import annotations

from dask._task_spec import Task
from dask.sizeof import sizeof

from udfdask.chunk.partial_result import Finished, Partial


class OutputTask(Task):
    """A task that is never fused with the task it reads from.

    dask optimises each collection alone in `dask.optimize`. If two outputs of one chunk task were
    each fused with it, it would run twice.
    """

    __slots__ = ()

    @property
    def block_fusion(self) -> bool:
        """Tell dask to leave this task alone."""
        return True


def _sizeof(value: Partial | Finished) -> int:
    """Return the size of a container in bytes: dask counts it as a few bytes otherwise."""
    return value.nbytes + 200


sizeof.register(Partial, _sizeof)
sizeof.register(Finished, _sizeof)
