"""Say in the words of HyperSpy what messages say with arguments and methods signals do not have."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from udfdask.errors import ArgumentValueError

_WHOLE = r"(chunks=\(([-\d, ]+)\) [\w ]+, or )array\.rechunk\(\{[^}]*\}\)"
"""Advice to make chunks of whole frames: the chunks where the data are made, or a rechunk."""


def with_rechunk_of_signals(text: str, n_sig: int) -> str:
    """Return a text about chunks with `signal.rechunk`, for `n_sig` signal axes.

    Examples
    --------
    >>> from udfdask.hyperspy.words import with_rechunk_of_signals
    >>> with_rechunk_of_signals("array.rechunk((4, 8, -1)) would do better", 1)
    'signal.rechunk(nav_chunks=(4, 8), sig_chunks=-1) would do better'
    """

    def call(sizes: str) -> str:
        nav = tuple(map(int, re.findall(r"-?\d+", sizes)))[:-n_sig]
        return f"signal.rechunk(nav_chunks={nav}, sig_chunks=-1)"

    text = re.sub(_WHOLE, lambda m: f"{m[1]}{call(m[2])}", text)
    return re.sub(r"array\.rechunk\(\(([-\d, ]+)\)\)", lambda m: call(m[1]), text)


@contextmanager
def in_words_of_signals() -> Iterator[None]:
    """Name `transpose` in place of `sig_dims`: a signal knows which axes are those of a frame."""
    try:
        yield
    except ArgumentValueError as error:
        text = str(error).replace("pass sig_dims=", "use sig_dims=")
        text = re.sub(r"\bsig_dims=(\d+)", r"signal.transpose(signal_axes=\1)", text)
        error.args = (text, *error.args[1:])
        raise
