"""A log record and an OpenTelemetry span for each run.

Nothing is collected unless a logger or a tracer of this process takes it. A process that traces has
imported OpenTelemetry itself, so this module never does.
"""

from __future__ import annotations

import logging
import platform
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from time import perf_counter
from typing import Any

from dask import base
from dask.utils import funcname

from udfdask.scheduling.progress import Work, status_after

LOG = logging.getLogger("udfdask.runs")


class RunLog:
    """The record and the span of one run; a run over no chunks has none."""

    def __init__(self) -> None:
        self._values: dict[str, Any] | None = None
        self._trace = _tracing()
        self._span: Any = None
        self._ended = threading.Lock()

    def start(self, function: str, get: Any, work: Callable[[], Work]) -> None:
        """Note that a function of udfdask starts a run on the scheduler with this `get`."""
        if self._trace is None and not LOG.isEnabledFor(logging.INFO):
            return
        udfs, sizes, _ = work()
        if not sizes:
            return
        frames, nbytes = map(sum, zip(*sizes.values(), strict=True))
        self._values = {
            "function": function,
            "udfs": list(udfs),
            "chunks": len(sizes),
            "frames": frames,
            "bytes": nbytes,
            "host": platform.node(),
            "scheduler": _scheduler_name(get),
        }
        if self._trace is not None:
            self._span = self._trace.get_tracer("udfdask").start_span(f"udfdask.{function}")
        self._start = perf_counter()

    def end(self, error: BaseException | None = None, status: str | None = None) -> None:
        """Write the record and end the span; only the first call counts."""
        if self._values is None or not self._ended.acquire(blocking=False):
            return
        values = self._values | {
            "seconds": perf_counter() - self._start,
            "status": status or status_after(error),
        }
        if error is not None:
            values["error"] = type(error).__name__
        LOG.info("%s %s", values["function"], values["status"], extra={"udfdask": values})
        if self._span is not None:
            self._span.set_attributes({f"udfdask.{name}": value for name, value in values.items()})
            if error is not None:
                self._span.record_exception(error)
                self._span.set_status(self._trace.StatusCode.ERROR)
            self._span.end()

    @contextmanager
    def running(self, function: str, get: Any, work: Callable[[], Work]) -> Iterator[None]:
        """Start and end a run; spans that begin meanwhile are children of its span."""
        self.start(function, get, work)
        current: Any = nullcontext()
        if self._span is not None:
            current = self._trace.use_span(
                self._span, record_exception=False, set_status_on_exception=False
            )
        try:
            with current:
                yield
        except BaseException as error:
            self.end(error)
            raise
        self.end()


def _tracing() -> Any:
    """Return the module `opentelemetry.trace` if this process has set up a tracer."""
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None or isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        return None
    return trace


def client_of(get: Any) -> Any:
    """Return the client of the cluster on which a `get` of dask runs; None for this machine."""
    owner = getattr(get, "__self__", None)
    if getattr(get, "__module__", None) == "frisky._dask_config":
        # Frisky makes this function dask's default scheduler: each thread has its own client
        owner = sys.modules["frisky._dask_config"].current_client()
    return owner if hasattr(owner, "scatter") else None


def is_frisky(client: Any) -> bool:
    """Return whether a client is one of Frisky, not of distributed."""
    return hasattr(client, "submit_graph")


def _scheduler_name(get: Any) -> str:
    """Return the address of a cluster, dask's name of a local scheduler, or a function's name."""
    if (client := client_of(get)) is not None:
        if is_frisky(client):
            return str(client.scheduler_address)
        return str(getattr(client.scheduler, "address", "closed"))
    names = base.named_schedulers.items()
    return next((name for name, known in names if known is get), None) or str(funcname(get))
