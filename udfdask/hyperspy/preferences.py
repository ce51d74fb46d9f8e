"""Defaults that HyperSpy's users have set."""

from __future__ import annotations

from typing import Any


def wants_progressbar(asked: bool | None) -> bool:
    """Take what the user asks for; return whether to show a bar, by default as HyperSpy does."""
    if asked is not None:
        return asked
    from hyperspy.api import preferences

    return bool(preferences.General.show_progressbar)


def wants_lazy(signal: Any, asked: bool | None) -> bool:
    """Take a signal and what the user asks for; return whether results are lazy, as in `s.map`."""
    return bool(signal._lazy if asked is None else asked)
