"""Counts on dask's schedulers of one machine, which call back as tasks end."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dask.callbacks import Callback

from udfdask.scheduling.progress.counter import Tally


@contextmanager
def counted_here(tally: Tally) -> Iterator[None]:
    """Count the tasks that schedulers finish meanwhile, those started by this thread."""
    me = threading.get_ident()

    def begin(dsk: Any) -> None:
        # a task may compute something of its own, with a scheduler that calls back here too
        if threading.get_ident() == me and not tally.started and any(key in tally for key in dsk):
            tally.start(dsk)

    def note(key: Any, *_: Any) -> None:
        if threading.get_ident() == me and tally.started:
            tally.add((key,))

    with Callback(start=begin, posttask=note):
        yield
