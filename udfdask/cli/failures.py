"""A user's mistakes as one paragraph on the terminal, rather than a traceback."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from udfdask.errors import UDFError

PLANNING: tuple[type[Exception], ...] = (
    UDFError,
    OSError,
    ValueError,
    TypeError,
    ImportError,
    EOFError,  # click would say "Aborted!", as if a user had pressed a key
)
"""What opening a file and planning a run raise about what the user asked for."""

RUNNING: tuple[type[Exception], ...] = (UDFError, OSError, EOFError)
"""What a user can do something about while data is processed; all else is a bug to be seen."""


@contextmanager
def told_plainly(expected: tuple[type[Exception], ...]) -> Iterator[None]:
    """Take the exceptions to expect; raise them as click's own, with nothing but their words."""
    try:
        yield
    except expected as error:
        words = str(error) or type(error).__name__
        notes = getattr(error, "__notes__", [])
        raise click.ClickException("\n".join([words, *notes])) from error


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Print warnings as a line each, without the place in the code that they come from."""

    def _show(message: Warning | str, *_: Any, **__: Any) -> None:
        click.echo(f"warning: {message}", err=True)

    with warnings.catch_warnings():
        warnings.showwarning = _show
        yield
