"""Tell distributed how to send computed results: their arrays from where they are in memory.

dask makes a result in a task on a worker. A result that is pickled there is copied twice: sending
160 MiB of nav results then needed 480 MiB in place of 320.
"""

from __future__ import annotations

import functools
import sys
from typing import Any

from udfdask.chunk import partial_result


def send_without_copies(result: Any) -> None:
    """Register the class `Result`, if this process has imported distributed."""
    if sys.modules.get("distributed") is not None:
        _register(result)


@functools.cache
def _register(result: Any) -> None:
    from distributed.protocol import dask_deserialize, dask_serialize  # type: ignore[attr-defined]

    partial_result.send_without_copies()
    # both take dictionaries too
    dump, load = (
        kind.dispatch(partial_result.Partial) for kind in (dask_serialize, dask_deserialize)
    )

    def to_frames(one: Any) -> Any:
        if one._tasks is not None:
            raise NotImplementedError  # a lazy result is pickled
        return dump({"info": one._info, "arrays": one._arrays, "masks": one._masks})

    dask_serialize.register(result, to_frames)
    dask_deserialize.register(result, lambda header, frames: result(**load(header, frames)))
