"""Show users their own line: errors and warnings leave out the lines of udfdask.

Between the call of `compute` and a method of a UDF there are twenty lines of dask and udfdask. dask
leaves out its own (setting `admin.traceback.shorten`); an empty setting shows all lines of both.

Errors of udfdask itself keep all their lines, because a report of such an error needs them.
"""

from __future__ import annotations

import functools
import itertools
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from types import FrameType, TracebackType
from typing import Any, TypeVar

from udfdask.base.config import hidden_paths
from udfdask.errors import UDFError, UDFWarning

F = TypeVar("F", bound=Callable[..., Any])

_FOR_USER = "_udfdask_for_user"
"""Attribute of exceptions that code of a user raised; it is pickled with them."""


def warn_user(text: str, category: type[Warning] = UDFWarning) -> None:
    """Issue a warning that names the first line outside of udfdask that led here."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_back is not None and _is_own(frame):
        frame = frame.f_back
    assert frame is not None
    place = (frame.f_code.co_filename, frame.f_lineno, str(frame.f_globals.get("__name__")))
    registry: dict[Any, Any] = frame.f_globals.setdefault("__warningregistry__", {})
    warnings.warn_explicit(text, category, *place, registry)


def _is_own(frame: FrameType) -> bool:
    return f"{frame.f_globals.get('__name__')}.".startswith("udfdask.")


class _Hiding:
    """A context in which exceptions of user code lose the lines of udfdask and dask."""

    __slots__ = ()

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: object, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is not None:
            hide_own_lines(error)


own_lines_hidden = _Hiding()


def hide_own_lines(error: BaseException) -> bool:
    """Remove lines of udfdask and dask from an exception of a user's code, or with a remedy."""
    if not (isinstance(error, UDFError) or hasattr(error, _FOR_USER)):
        return False
    for one in _chain(error):
        if one.__traceback__ is not None:
            one.__traceback__ = _shortened(one.__traceback__)
    return True


def hides_own_lines(function: F) -> F:
    """Return a function whose exceptions of user code do not show the lines of udfdask."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        with own_lines_hidden:
            return function(*args, **kwargs)

    return call  # type: ignore[return-value]


def add_origin(error: BaseException, note: str) -> None:
    """Add to an exception of user code where it was raised."""
    error.add_note(note)
    setattr(error, _FOR_USER, True)


def _chain(error: BaseException) -> Iterator[BaseException]:
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
    """Return whether a line is one of udfdask or of Frisky's `dask.compute`, or dask hides it."""
    code = line.tb_frame.f_code
    module = str(line.tb_frame.f_globals.get("__name__"))
    return module.startswith(("udfdask.", "frisky.")) or hidden.match(code.co_filename) is not None
