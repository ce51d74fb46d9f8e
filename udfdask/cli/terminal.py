"""Report mistakes and warnings in a paragraph."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from udfdask.errors import UDFError
from udfdask.tracebacks import hide_own_lines

PLANNING: tuple[type[Exception], ...] = (UDFError, OSError, ValueError, TypeError, ImportError)
"""Exceptions about the user's input, raised when a file is opened or a run is planned."""

RUNNING: tuple[type[Exception], ...] = (UDFError, OSError)
"""Exceptions of a run that a user can mend; all others show their traceback."""


@contextmanager
def plain_errors(expected: tuple[type[Exception], ...]) -> Iterator[None]:
    """Print only the message of expected exceptions, and only the user's lines of others."""
    try:
        yield
    except expected as error:
        words = [str(error) or type(error).__name__, *getattr(error, "__notes__", [])]
        raise click.ClickException("\n".join(words)) from error
    except Exception as error:
        if not hide_own_lines(error):
            raise
        click.echo("".join(traceback.format_exception(error)).rstrip(), err=True)
        raise click.exceptions.Exit(1) from error


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Print each warning as one line, without its place in the code."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        click.echo(f"warning: {message}", err=True)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield
