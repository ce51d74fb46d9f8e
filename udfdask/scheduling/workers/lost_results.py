"""Says what a cluster has lost, where dask says that a future has been cancelled."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from udfdask.errors import ClusterError

_GONE = (
    "the cluster no longer has data that the run needs: the worker that held them has ended, and "
    "they cannot be computed again. Scatter or persist them anew, and run again"
)
_CONNECTION = (
    "the connection to the scheduler was lost: its process has ended, or the network has "
    "failed. Start the cluster anew, and run again with a new client"
)
_WORDS = {
    "scheduler-connection-lost": _CONNECTION,
    "scheduler-restart": (
        "the scheduler was restarted, which drops all tasks and their results. Run again"
    ),
    "lost dependencies": _GONE,
    "already forgotten": _GONE,
}
"""What has happened, by the reason that dask gives; for all other reasons somebody cancelled."""


def loss_of(error: BaseException, client: Any = None, where: str = "") -> ClusterError | None:
    """Return the error of a cancelled future in words; None if somebody cancelled it on purpose.

    `where` says how far the run has come.
    """
    words = _WORDS.get(getattr(error, "reason", ""))
    if words is None and _has_given_up(client):
        words = _CONNECTION
    return None if words is None else ClusterError(f"{words}{where}")


@contextmanager
def asking_scheduler(client: Any) -> Iterator[None]:
    """Raise a ClusterError where the scheduler does not answer a question; no task runs here."""
    if client.status == "closed":
        closed = "the client has been closed. Run again with a new client"
        raise ClusterError(_CONNECTION if _has_given_up(client) else closed)
    try:
        yield
    except OSError as error:
        raise ClusterError(_CONNECTION) from error


def _has_given_up(client: Any) -> bool:
    """Return whether a client has closed itself, because its scheduler did not come back.

    It cancels what was sent meanwhile without a reason. A client that somebody closes keeps its
    connection, closed; one that looks for its scheduler has none.
    """
    return getattr(client, "status", "") in ("closing", "closed") and client.scheduler_comm is None
