"""Where a run is computed: in this process, in others, or on a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click

LOCAL = ("threads", "processes", "synchronous")


@contextmanager
def connected(scheduler: str | None) -> Iterator[dict[str, str]]:
    """Take ``--scheduler``; give the arguments for compute, and a client where it is an address."""
    if scheduler is None or scheduler in LOCAL:
        yield {} if scheduler is None else {"scheduler": scheduler}
        return
    if "://" not in scheduler:
        raise click.BadParameter(
            f"{scheduler!r} is none of {', '.join(LOCAL)}, and no address such as "
            "tcp://127.0.0.1:8786",
            param_hint="--scheduler",
        )
    try:
        from distributed import Client
    except ImportError as error:
        raise click.ClickException(
            'a scheduler\'s address needs distributed: pip install "udfdask[distributed]"'
        ) from error
    try:
        client = Client(scheduler, timeout="10s")
    except (OSError, ValueError) as error:
        raise click.ClickException(f"no scheduler answers at {scheduler}: {error}") from error
    with client:
        yield {}
