"""Write names in messages about buffers, with guesses at typos."""

from __future__ import annotations

from collections.abc import Iterable


def quoted(names: Iterable[str], meant: Iterable[str] = ()) -> str:
    """Return names as text: 'a' and 'b'; with a guess for each that is like one of `meant`."""
    from udfdask.arrays.geometry.labeled_places import did_you_mean

    known = list(meant)
    parts = []
    for name in names:
        guess = did_you_mean(name, known).removeprefix("; ")
        parts.append(f"{name!r} ({guess})" if guess else repr(name))
    *most, last = parts
    return f"{', '.join(most)} and {last}" if most else last
