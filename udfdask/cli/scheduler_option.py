"""Check the address after ``--scheduler`` and connect to it: a scheduler can run any code."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import click

LOCAL = ("threads", "processes", "synchronous")
"""Names of dask's schedulers on this machine."""

_ENCRYPTED = ("tls", "wss")
"""Protocols of distributed that encrypt, and check certificates on both sides."""


def check_scheduler(scheduler: str | None, *, insecure: bool) -> None:
    """Raise if this is neither a name nor an address, or an address that is not safe to use."""
    if scheduler is None or scheduler in LOCAL:
        if insecure:
            raise click.UsageError("--insecure-scheduler needs --scheduler with an address")
        return
    if "://" not in scheduler:
        raise click.BadParameter(
            f"{scheduler!r} is not one of {', '.join(LOCAL)}, and not an address such as "
            "tcp://127.0.0.1:8786",
            param_hint="--scheduler",
        )
    if insecure or _is_safe(scheduler):
        return
    raise click.BadParameter(
        f"{scheduler} is not on this machine and not encrypted: everyone who can reach or imitate "
        "this scheduler can run any code on its workers, and read your data. Use a scheduler with "
        "TLS (tls://...), or a tunnel, ssh -L 8786:localhost:8786 HOST, and tcp://127.0.0.1:8786. "
        "If you trust all machines on the network, add --insecure-scheduler",
        param_hint="--scheduler",
    )


def _is_safe(address: str) -> bool:
    """Return whether an address is encrypted or on this machine."""
    try:
        parts = urlsplit(address)
        host = parts.hostname or ""
    except ValueError:  # for example a bracket that is not closed
        return False
    if parts.scheme in (*_ENCRYPTED, "inproc") or host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:  # a name, which anyone's name server can map to any machine
        return False


@contextmanager
def connected(scheduler: str | None) -> Iterator[dict[str, str]]:
    """Convert ``--scheduler`` to arguments of compute; connect a client if it is an address."""
    if scheduler is None or scheduler in LOCAL:
        yield {} if scheduler is None else {"scheduler": scheduler}
        return
    try:
        from distributed import Client
    except ImportError as error:
        raise click.ClickException(
            'a scheduler\'s address needs distributed: pip install "udfdask[distributed]"'
        ) from error
    try:
        client = Client(scheduler, timeout="10s")
    except (OSError, ValueError, TypeError) as error:  # TypeError: TLS without certificates
        raise click.ClickException(f"no scheduler answers at {scheduler}: {error}") from error
    with client:
        yield {}
