"""The time limit of a computation, `timeout=`, and the error at its end."""

from __future__ import annotations

import math
import re
import threading
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

from dask.utils import parse_timedelta

from udfdask.errors import ArgumentTypeError, ArgumentValueError, RunTimeoutError

T = TypeVar("T")
Timeout = float | str | timedelta | None
"""A time limit: seconds, a text such as ``"10 min"``, or None."""

LISTED = 8
"""Tasks that the message lists."""

_PACKAGE = str(Path(__file__).resolve().parents[2])


class Deadline:
    """The end of the time that a computation may take, which begins now."""

    def __init__(self, timeout: Any) -> None:
        self._seconds = _seconds(timeout)
        self._end = time.monotonic() + self._seconds

    @property
    def left(self) -> float:
        """Seconds left; 0 if the time is over."""
        return max(0.0, self._end - time.monotonic())

    def error(self, running: Sequence[str], remedy: str) -> RunTimeoutError:
        """Return the error with a list of the tasks that are running."""
        lines = [f"- {task}" for task in running[:LISTED]]
        if len(running) > LISTED:
            lines.append(f"- and {len(running) - LISTED} more")
        listed = ["Running at that time:", *lines] if lines else ["No task was running."]
        head = f"the computation did not end within timeout={self._seconds:g} s. "
        return RunTimeoutError("\n".join([f"{head}{listed[0]}", *listed[1:], remedy]))


def check_timeout(timeout: Any) -> None:
    """Raise if a time limit is invalid."""
    deadline_of(timeout)


def deadline_of(timeout: Any) -> Deadline | None:
    """Return the deadline of a computation that begins now; None without a time limit."""
    return None if timeout is None else Deadline(timeout)


def _seconds(timeout: Any) -> float:
    """Return a time limit in seconds."""
    words = "timeout must be a positive number of seconds or a time such as '10 min'"
    if isinstance(timeout, str):
        timeout = re.sub(r"\s*min$", " minutes", timeout.strip())  # dask does not know it
    try:
        seconds = math.nan if isinstance(timeout, bool) else float(parse_timedelta(timeout))
    except (TypeError, AttributeError):
        raise ArgumentTypeError(f"{words}, not {timeout!r}") from None
    except (ValueError, LookupError, OverflowError):  # dask's parser raises all of these
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise ArgumentValueError(f"{words}, not {timeout!r}")
    return min(seconds, threading.TIMEOUT_MAX / 2)


def innermost_user_line(stack: Sequence[str]) -> str:
    """Return the line that a user's code is executing, from a stack of frames in words.

    A frame is two lines, as in a traceback; the innermost frame comes last. Frames outside of
    installed packages and of Python itself come from users. If there is none after the last frame
    of udfdask, return the innermost frame.
    """
    inner: list[str] = []
    for frame in reversed(stack):
        if _PACKAGE in frame:
            break
        inner.append(frame)
    own = [frame for frame in inner if not _is_installed(frame)]
    chosen = (own or inner or list(stack[-1:]))[:1]
    return " ".join(chosen[0].split()) if chosen else ""


def _is_installed(frame: str) -> bool:
    """Return whether a frame belongs to an installed package or to Python."""
    path = frame.partition('", line')[0].replace("\\", "/")
    return "-packages/" in path or "/lib/python" in path or "<frozen" in path


class NoAnswerError(Exception):
    """A function took too long."""


def answer_within(seconds: float, function: Callable[[], T]) -> T:
    """Return the value of a function, or raise NoAnswerError if it takes too long.

    A function that waits for another process may wait forever; its thread is then left behind.
    """
    values: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            values.append(function())
        except BaseException as error:  # noqa: BLE001  # raised again in the thread of the caller
            errors.append(error)

    thread = threading.Thread(target=run, name="udfdask-answer", daemon=True)
    thread.start()
    thread.join(min(seconds, threading.TIMEOUT_MAX))
    if errors:
        raise errors[0]
    if not values:
        raise NoAnswerError
    return values[0]
