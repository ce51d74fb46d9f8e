"""Report a user's mistakes as one paragraph on the terminal instead of a traceback."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from udfdask.cli.echo import echo
from udfdask.errors import UDFError
from udfdask.tracebacks import hide_own_lines

PLANNING: tuple[type[Exception], ...] = (
    UDFError,
    OSError,
    ValueError,
    TypeError,
    ImportError,
    EOFError,  # click would print "Aborted!", as if the user had pressed a key
)
"""Exceptions about the user's input, raised when a file is opened or a run is planned."""

RUNNING: tuple[type[Exception], ...] = (UDFError, OSError, EOFError)
"""Exceptions of a run that a user can fix. Any other exception is a bug: show its traceback.

If it is a bug in code of the user, only the lines of that code are shown.
"""


@contextmanager
def plain_errors(expected: tuple[type[Exception], ...]) -> Iterator[None]:
    """Convert expected exceptions to click's exceptions, which print only the message."""
    try:
        yield
    except expected as error:
        words = str(error) or type(error).__name__
        notes = getattr(error, "__notes__", [])
        raise click.ClickException("\n".join([words, *notes])) from error
    except Exception as error:
        if not hide_own_lines(error):
            raise
        echo("".join(traceback.format_exception(error)).rstrip(), err=True)
        raise click.exceptions.Exit(1) from error


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Print each warning as one line, without its place in the code."""

    def _show(message: Warning | str, *_: Any, **__: Any) -> None:
        echo(f"warning: {message}", err=True)

    with warnings.catch_warnings():
        warnings.showwarning = _show
        yield
