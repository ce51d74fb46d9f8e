"""Options of the scripts that compare libraries."""

from __future__ import annotations

import sys
from collections.abc import Collection


def chosen(given: str | None, known: Collection[str], kind: str) -> list[str]:
    """Return the names that an option lists, by default all; end the script if one is unknown."""
    names = list(known) if given is None else given.split(",")
    unknown = [name for name in names if name not in known]
    if unknown:
        sys.exit(f"unknown {kind}: {', '.join(unknown)}; choose from {', '.join(known)}")
    return names
