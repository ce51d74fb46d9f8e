"""Tell distributed how to send computed results, without copies of their arrays in a pickle."""

from __future__ import annotations

import functools
from typing import Any

from udfdask.chunk import partial_result


@functools.cache
def send_without_copies(cls: Any) -> None:
    """Register the class of results."""
    partial_result.send_without_copies()
    partial_result.register_sending(
        cls, _parts_of, lambda info, parts: cls(info, parts["arrays"], parts["masks"])
    )


def _parts_of(result: Any) -> tuple[Any, dict[str, dict[str, Any]]]:
    """Return the metadata of a computed result, and its arrays."""
    if result._tasks is not None:
        raise NotImplementedError  # a lazy result is pickled
    return result._info, {"arrays": result._arrays, "masks": result._masks}
