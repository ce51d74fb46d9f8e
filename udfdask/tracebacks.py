"""Show users their own line when their code fails: leave the lines of udfdask out of tracebacks.

Between the call of `compute` and a method of a UDF there are twenty lines of dask and udfdask. dask
leaves out its own (setting `admin.traceback.shorten`); an empty setting shows all lines of both.

Errors of udfdask itself keep all their lines, because a report of such an error needs them.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, TypeVar

from udfdask.config import hidden_paths
from udfdask.errors import UDFError

F = TypeVar("F", bound=Callable[..., Any])

ORIGINS = ("raised in ", "raised by ")
"""Starts of the notes that udfdask adds to exceptions of user code."""


class _Hiding:
    """A context in which exceptions of user code lose the lines of udfdask and dask."""

    __slots__ = ()

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: object, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None or not _is_for_user(error):
            return
        for one in _chain(error):
            if one.__traceback__ is not None:
                one.__traceback__ = _shortened(one.__traceback__)


own_lines_hidden = _Hiding()


def hides_own_lines(function: F) -> F:
    """Return a function whose exceptions of user code do not show the lines of udfdask."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        with own_lines_hidden:
            return function(*args, **kwargs)

    return call  # type: ignore[return-value]


def _is_for_user(error: BaseException) -> bool:
    """Return whether user code raised an exception, or its message says what the user can do."""
    notes = getattr(error, "__notes__", ())
    return isinstance(error, UDFError) or any(str(note).startswith(ORIGINS) for note in notes)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception and those that it was raised from."""
    seen: set[int] = set()
    one: BaseException | None = error
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        yield one
        one = one.__cause__ or (None if one.__suppress_context__ else one.__context__)


def _shortened(traceback: TracebackType) -> TracebackType:
    """Return a traceback without the lines of udfdask and dask, except for the last line."""
    patterns = hidden_paths()
    if not patterns:
        return traceback
    hidden = re.compile(f".*({'|'.join(patterns)})")
    lines: list[TracebackType] = []
    line: TracebackType | None = traceback
    while line is not None:
        lines.append(line)
        line = line.tb_next
    kept = [line for line in lines[:-1] if not _is_internal(line, hidden)]
    kept.append(lines[-1])
    for one, following in itertools.pairwise(kept):
        one.tb_next = following
    return kept[0]


def _is_internal(line: TracebackType, hidden: re.Pattern[str]) -> bool:
    """Return whether a line of a traceback is one of udfdask's modules, or dask hides it."""
    code = line.tb_frame.f_code
    module = str(line.tb_frame.f_globals.get("__name__"))
    return module.startswith("udfdask.") or hidden.match(code.co_filename) is not None
