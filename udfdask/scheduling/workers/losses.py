"""Explain what a cluster loses: workers that end, data, and connections."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import Any

from udfdask.errors import ClusterError
from udfdask.scheduling.workers.task_names import TaskNames

_GONE = (
    "the cluster has lost data that the run needs: their worker has ended, and they cannot be "
    "computed again. Scatter or persist the data again, then repeat the run"
)
_CONNECTION = (
    "the connection to the scheduler was lost: its process has ended, or the network has "
    "failed. Restart the cluster, and repeat the run with a new client"
)
_CLOSED = "the client has been closed. Repeat the run with a new client"
_MESSAGES = {
    "scheduler-connection-lost": _CONNECTION,
    "scheduler-restart": (
        "the scheduler was restarted, and has lost all tasks and results. Repeat the run"
    ),
    "lost dependencies": _GONE,
    "already forgotten": _GONE,
}
"""Messages by dask's reasons; for all other reasons, the user cancelled the future."""


@contextmanager
def explaining_killed_workers(client: Any, names: TaskNames) -> Iterator[None]:
    """Add a note to a KilledWorker: the UDFs, the chunk, and what to do."""
    try:
        yield
    except Exception as error:
        if client is not None:
            from distributed import KilledWorker

            if isinstance(error, KilledWorker):
                error.add_note(
                    f"raised by {names.describe(error.task)}: the workers that had it ended. Their "
                    "logs say whether they reached their memory limit: then make chunks smaller "
                    "with array.rechunk(...), or give each worker fewer threads. Otherwise the UDF "
                    "or a library ended the process: run this chunk alone on the scheduler "
                    "'synchronous', with roi= set to its positions"
                )
        raise


def explain_loss(error: BaseException, client: Any = None, state: str = "") -> ClusterError | None:
    """Return an error that explains a cancelled future; None if the user cancelled it.

    `state` is a text about the progress of the run.
    """
    message = _MESSAGES.get(getattr(error, "reason", ""))
    if message is None and _has_given_up(client):
        message = _CONNECTION
    return None if message is None else ClusterError(f"{message}{state}")


@contextmanager
def asking_scheduler(client: Any) -> Iterator[None]:
    """Raise a ClusterError if the scheduler does not answer a request. Run no tasks inside."""
    check_open(client)
    try:
        yield
    except OSError as error:
        raise ClusterError(_CONNECTION) from error


def check_open(client: Any) -> None:
    """Raise a ClusterError if a client has been closed; otherwise it would fail in many ways."""
    if client.status == "closed":
        raise ClusterError(_CONNECTION if _has_given_up(client) else _CLOSED)


@contextmanager
def explaining_losses(client: Any) -> Iterator[None]:
    """Raise a ClusterError if futures are cancelled because of a loss or a closed client."""
    try:
        yield
    except Exception as error:  # a client without a connection raises many types of errors
        loss = explain_loss(error, client)
        is_closed = getattr(client, "status", "") in ("closing", "closed")
        # distributed's sync fails with an UnboundLocalError if its event loop has ended
        if loss is None and is_closed and isinstance(error, (CancelledError, UnboundLocalError)):
            loss = ClusterError(_CLOSED)
        if loss is None:
            raise
        raise loss from error


def _has_given_up(client: Any) -> bool:
    """Return whether a client has closed itself because it could not reconnect to its scheduler.

    Such a client cancels futures without a reason. It has no connection object; a client that the
    user closes still has one.
    """
    return getattr(client, "status", "") in ("closing", "closed") and client.scheduler_comm is None
