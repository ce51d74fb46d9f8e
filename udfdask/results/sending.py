"""Tell distributed how to send computed results, without copies of their arrays in a pickle."""

from __future__ import annotations

import functools
import sys
from collections.abc import Hashable
from typing import Any


def send_without_copies(cls: Hashable) -> None:
    """Register the class of results, if this process has imported distributed."""
    if sys.modules.get("distributed") is not None:
        _register(cls)


@functools.cache
def _register(cls: Any) -> None:
    from udfdask.scheduling import send_partials

    send_partials.send_without_copies()
    send_partials.register_sending(
        cls, _parts_of, lambda info, parts: cls(info, parts["arrays"], parts["masks"])
    )


def _parts_of(result: Any) -> tuple[Any, dict[str, dict[str, Any]]]:
    """Return the metadata of a computed result, and its arrays."""
    if result._tasks is not None:
        raise NotImplementedError  # a lazy result is pickled
    return result._info, {"arrays": result._arrays, "masks": result._masks}
