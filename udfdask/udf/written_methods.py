"""The methods that a user wrote, and how messages name them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def quoted(names: Iterable[str]) -> str:
    """Return names as text: 'a' and 'b'."""
    *most, last = map(repr, names)
    return f"{', '.join(most)} and {last}" if most else last


OPTIONAL = {
    *(f"process_{method}" for method in ("tile", "frame", "neighborhood", "partition")),
    *("preprocess", "postprocess", "cleanup", "merge_all"),
}
"""Methods that udfdask calls although `UDF` does not define them."""


def misspelled_methods(
    udf: Any, meant: Iterable[str] | None = None, *, cutoff: float = 0.85
) -> list[str]:
    """Return a text for each unused method whose name is close (0 to 1) to one that is called."""
    written: dict[str, type] = {}
    ours: set[str] = set()
    used: set[str] = set()
    for cls in type(udf).__mro__:
        # LiberTEM's base class is not the user's either
        if cls is object or cls.__module__.partition(".")[0] in ("udfdask", "libertem"):
            ours |= vars(cls).keys()
            continue
        for name, value in vars(cls).items():
            if hasattr(value, "__code__"):
                written.setdefault(name, cls)
                used.update(value.__code__.co_names)
    known = OPTIONAL | {name for name in ours if not name.startswith("_")}
    others = {name for name in written if not name.startswith("_")} - known
    if not others:  # as in nearly all UDFs
        return []
    from difflib import get_close_matches

    wanted, texts = list(known if meant is None else meant), []
    for name in sorted(others - used):
        if near := get_close_matches(name, wanted, n=1, cutoff=cutoff):
            owner = written[name].__name__
            texts.append(f"{owner}.{name} is never called: did you mean {near[0]}?")
    return texts


def is_of_user(cls: Any) -> bool:
    """Return whether a UDF runs a user's code: a class of theirs, or a function that ours calls."""
    return not cls.__module__.startswith("udfdask.udfs.") or cls._plain_function is not None
