"""Print, report mistakes, and end cleanly.

A user's mistake is one paragraph instead of a traceback. A command ends quietly if nobody reads its
output any more (``udfdask udfs | head -3``), and cleanly after SIGTERM or SIGHUP: `kill`, the end
of a batch job, a closed terminal. By default, Python ends without informing the processes of
``--scheduler processes``. They would wait for more tasks forever, keep their memory, and keep their
pipes open for other programs.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Any

import click

from udfdask.errors import UDFError
from udfdask.tracebacks import hide_own_lines

ENDED = 141
"""Exit code of a program that the signal SIGPIPE has ended, as a shell reports it."""


class ReaderGoneError(click.exceptions.Exit):
    """Ends a command without a message: the program that reads its output has ended."""

    def __init__(self) -> None:
        super().__init__(ENDED)


def echo(text: str = "", *, err: bool = False, newline: bool = True) -> None:
    """Print a text; if nobody reads the output any more, raise `ReaderGoneError`.

    From then on nothing is printed. A message on standard error that nobody reads is left out.
    """
    try:
        click.echo(text, err=err, nl=newline, color=None if newline else True)
    except BrokenPipeError:
        _silence()
        if not err:
            raise ReaderGoneError from None


def going_on(anyway: bool) -> AbstractContextManager[None]:
    """Return a context in which a command goes on without a reader, because it writes files."""
    return suppress(ReaderGoneError) if anyway else nullcontext()


def _silence() -> None:
    """Connect standard output and standard error to nothing, if nobody reads them.

    Otherwise Python would write the rest of its buffers at the end, and report that this fails.
    """
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            nothing = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nothing, stream.fileno())
            os.close(nothing)


_NAMES = ("SIGTERM", "SIGHUP")  # Windows has no SIGHUP

SECONDS = 5
"""Time limit for the rest of the cleanup; after it, the kernel ends the process by ``SIGALRM``."""


class _AskedToEndError(BaseException):
    """Leave all running code, like Ctrl-C does, so that hidden files are removed."""


@contextmanager
def ending_when_asked() -> Iterator[None]:
    """After a signal to end, end the started processes and remove hidden files.

    The process then ends immediately by the same signal; without this, Python would wait for tasks
    in threads. A second signal ends the process without any cleanup. Signals that are already
    ignored (`nohup`) or handled are not changed.
    """
    known = [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]
    ours = [number for number in known if signal.getsignal(number) is signal.SIG_DFL]
    if threading.current_thread() is not threading.main_thread():
        ours = []  # Python allows signal handlers only in the main thread
    asked: list[int] = []

    def leave(number: int, _: Any) -> None:
        for each in ours:
            signal.signal(each, signal.SIG_DFL)
        asked.append(number)
        _end_processes()  # otherwise dask waits for their tasks
        # if a process ends while it writes a result, the pool waits for the rest: limit the time
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(SECONDS)
        raise _AskedToEndError

    for number in ours:
        signal.signal(number, leave)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)
        if asked:
            _end_processes()  # a thread may have started more
            os.kill(os.getpid(), asked[0])


def _end_processes() -> None:
    """End the processes that this process has started."""
    for process in multiprocessing.active_children():
        process.terminate()


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
