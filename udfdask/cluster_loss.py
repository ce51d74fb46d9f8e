"""Says what a cluster has lost, where dask says that a future has been cancelled."""

from __future__ import annotations

from udfdask.errors import ClusterError

_GONE = (
    "the cluster no longer has data that the run needs: the worker that held them has ended, and "
    "they cannot be computed again. Scatter or persist them anew, and run again"
)
_WORDS = {
    "scheduler-connection-lost": (
        "the connection to the scheduler was lost: its process has ended, or the network has "
        "failed. Start the cluster anew, and run again with a new client"
    ),
    "scheduler-restart": (
        "the scheduler was restarted, which drops all tasks and their results. Run again"
    ),
    "lost dependencies": _GONE,
    "already forgotten": _GONE,
}
"""What has happened, by the reason that dask gives; for all other reasons somebody cancelled."""


def loss_of(error: BaseException, where: str = "") -> ClusterError | None:
    """Return a cancelled future's error in words; None if somebody has cancelled it on purpose.

    `where` says how far the run has come.
    """
    words = _WORDS.get(getattr(error, "reason", ""))
    return None if words is None else ClusterError(f"{words}{where}")
