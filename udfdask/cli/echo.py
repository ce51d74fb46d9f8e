"""Print, and end quietly if nobody reads the output any more: ``udfdask udfs | head -3``."""

from __future__ import annotations

import os
import sys
from contextlib import AbstractContextManager, nullcontext, suppress

import click

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
