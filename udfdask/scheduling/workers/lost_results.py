"""Says what a cluster has lost, where dask says that a future has been cancelled."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import CancelledError
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
_CLOSED = "the client has been closed. Run again with a new client"
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
    check_open(client)
    try:
        yield
    except OSError as error:
        raise ClusterError(_CONNECTION) from error


def check_open(client: Any) -> None:
    """Raise a ClusterError if a client has been closed: it then fails in many ways."""
    if client.status == "closed":
        raise ClusterError(_CONNECTION if _has_given_up(client) else _CLOSED)


@contextmanager
def told_in_words(client: Any) -> Iterator[None]:
    """Raise a ClusterError where futures are cancelled for a loss, or with their client."""
    try:
        yield
    except Exception as error:  # a client that has given up fails in many ways
        loss = loss_of(error, client)
        is_closed = getattr(client, "status", "") in ("closing", "closed")
        if loss is None and is_closed and isinstance(error, CancelledError):
            loss = ClusterError(_CLOSED)
        if loss is None:
            raise
        raise loss from error


def _has_given_up(client: Any) -> bool:
    """Return whether a client has closed itself, because its scheduler did not come back.

    It cancels what was sent meanwhile without a reason. A client that somebody closes keeps its
    connection, closed; one that looks for its scheduler has none.
    """
    return getattr(client, "status", "") in ("closing", "closed") and client.scheduler_comm is None
