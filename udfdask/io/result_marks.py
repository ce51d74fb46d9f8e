"""Mark files and stores as results, so that they are not taken for data of a detector."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

MARK = "udfdask_results"
"""Attribute of a file or store of results: a JSON list of the names of its results."""

RUN = "udfdask_run"
"""Attribute of a file or store that a run with ``resume`` has written: the name of the run."""


def mark(names: Iterable[str]) -> dict[str, str]:
    """Return the attribute of a file that contains results with these names."""
    return {MARK: json.dumps(list(names))}


def marked_results(attrs: Any) -> list[str] | None:
    """Return the names of the results in a file with these attributes; None if it has none.

    Attributes that are no mapping have no names either.
    """
    try:
        names = json.loads(attrs[MARK])
    except (KeyError, TypeError, ValueError):
        return None
    return names if isinstance(names, list) and all(isinstance(n, str) for n in names) else None


def without_mark(attrs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the other attributes of a file."""
    return {key: value for key, value in attrs.items() if key not in (MARK, RUN)}
