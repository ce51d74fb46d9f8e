"""Report mistakes and warnings in a paragraph, and end cleanly after a signal."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

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
    except (KeyboardInterrupt, SystemExit) as error:  # click prints nothing but "Aborted!"
        for note in getattr(error, "__notes__", ()):
            click.echo(f"\n{note}", err=True)
        raise
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


@contextmanager
def ending_when_asked() -> Iterator[None]:
    """End cleanly, then by the same signal, if `kill`, a batch system or a closed terminal asks.

    By default, Python ends at once, and the processes of ``--scheduler processes`` wait for tasks
    forever. Signals that are already ignored (`nohup`) are not changed.
    """
    known = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    ours = [number for number in known if signal.getsignal(number) is signal.SIG_DFL]
    if threading.current_thread() is not threading.main_thread():
        ours = []  # Python allows handlers only there
    asked: list[int] = []

    def leave(number: int, _: Any) -> NoReturn:
        asked.append(number)
        for process in multiprocessing.active_children():
            process.terminate()  # otherwise dask waits for their tasks
        raise SystemExit

    for number in ours:
        signal.signal(number, leave)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)
        if asked:
            os.kill(os.getpid(), asked[0])
