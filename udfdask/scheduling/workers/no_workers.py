"""Say that a run waits because its cluster has no workers; dask waits without a word."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import Any

PAUSE = 5.0
"""Seconds between two questions to the scheduler, each a small message; short runs ask none."""

_LOST = (OSError, RuntimeError, ValueError, AttributeError, CancelledError)
"""Exceptions of a question if the scheduler is lost or the client has been closed."""

LOG = logging.getLogger("udfdask")


@contextmanager
def noting_no_workers(client: Any) -> Iterator[None]:
    """Log a note, once for each such time, if the cluster has no workers during a run."""
    ended = threading.Event()
    # dask's own functions wait in this thread
    watch = threading.Thread(target=_watch, args=(client, ended), name="udfdask-watch", daemon=True)
    watch.start()
    try:
        yield
    finally:
        ended.set()


def _watch(client: Any, ended: threading.Event) -> None:
    """Ask regularly, until a run has ended, whether there are workers."""
    was_empty = False
    while not ended.wait(PAUSE):
        try:
            is_empty = not client.sync(client.scheduler.identity, n_workers=1)["workers"]
        except _LOST:  # the run itself raises the error about it
            return
        if is_empty and not was_empty and not ended.is_set():
            LOG.warning(
                "the cluster has no workers: the run waits for one. Start workers, or stop the run "
                "with Ctrl+C; timeout= in compute limits the time of a run"
            )
        was_empty = is_empty
