"""Settings outside of a value that its code reads: environment variables, dask's configuration."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import Any

import dask.config

from udfdask.names.content import Reference

_ENVIRONMENT = {"os", "os.environ", "os.environb", "os.getenv", "os.getenvb"}
READERS = (
    ("library", "os"),
    ("library", "os", "environ"),
    ("library", "os", "getenv"),
    ("library", "dask", "config"),
    ("library", "dask.config"),
    ("library", "dask.config", "get"),
)
"""Names of what reads settings."""

_MISSING = object()


def settings_of(noted: Iterable[Reference]) -> list[tuple[str, Any]]:
    """Return the settings that code names, and their values.

    All texts in the code and its parameters that are the name of a variable or setting count, if
    the code uses variables or settings; others never count. So a run goes on in another process,
    whose environment has other variables.
    """
    used = {name for kind, name in noted if kind == "uses"}
    of_environment = not _ENVIRONMENT.isdisjoint(used)
    of_dask = any(
        name in ("dask", "dask.config") or name.startswith("dask.config.") for name in used
    )
    of_decimals = any(name == "decimal" or name.startswith("decimal.") for name in used)
    if not (of_environment or of_dask or of_decimals):
        return []
    found: list[tuple[str, Any]] = []
    texts = sorted(text for kind, text in noted if kind == "text")
    if of_environment:
        found += [(text, os.environ[text]) for text in texts if text in os.environ]
    if of_dask:
        settings = ((text, dask.config.get(text, _MISSING)) for text in texts)
        found += [(text, value) for text, value in settings if value is not _MISSING]
    if of_decimals:
        found += _precisions()
    return found


def _precisions() -> list[tuple[str, Any]]:
    """Return how decimals are rounded in this thread and in new ones."""
    decimal = sys.modules["decimal"]
    found: list[tuple[str, Any]] = []
    for name, context in (("here", decimal.getcontext()), ("new", decimal.DefaultContext)):
        # not its flags: they only tell what has been computed
        values = (context.prec, context.rounding, context.Emin, context.Emax, context.clamp)
        traps = sorted(signal.__name__ for signal, is_set in context.traps.items() if is_set)
        found.append((f"decimals {name}", (*values, context.capitals, traps)))
    return found
