"""The methods that a user wrote, and how messages name them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any


def quoted(names: Iterable[str]) -> str:
    """Return names as text: 'a' and 'b'."""
    *most, last = map(repr, names)
    return f"{', '.join(most)} and {last}" if most else last


METHODS = ("tile", "frame", "neighborhood", "partition")
"""Endings of the names of processing methods."""

OPTIONAL = {*(f"process_{x}" for x in METHODS), "preprocess", "postprocess", "cleanup", "merge_all"}
"""Methods that udfdask calls although `UDF` does not define them."""


def functions_of(udf: Any) -> Iterator[tuple[type, str, Callable[..., Any]]]:
    """Yield the methods that the user wrote, also overridden ones; the class of the UDF first."""
    for cls in type(udf).__mro__:
        if not _is_ours(cls):
            for name, value in vars(cls).items():
                if hasattr(value, "__code__"):
                    yield cls, name, value


def _is_ours(cls: type) -> bool:
    """Return whether a class is not one of the user's, but of udfdask, or LiberTEM's base class."""
    return cls is object or cls.__module__.partition(".")[0] in ("udfdask", "libertem")


def visible_methods(udf: Any) -> dict[str, type]:
    """Return the class that defines each method that the user wrote, by name."""
    return {name: cls for cls, name, _ in reversed([*functions_of(udf)])}


def names_in_methods(udf: Any) -> set[str]:
    """Return the names that the user's methods use, such as those of helpers."""
    return {name for _, _, method in functions_of(udf) for name in method.__code__.co_names}


def misspelled_methods(
    udf: Any, meant: Iterable[str] | None = None, *, cutoff: float = 0.85
) -> list[str]:
    """Return a text for each unused method whose name is close (0 to 1) to one that is called."""
    ours = {name for cls in type(udf).__mro__ if _is_ours(cls) for name in vars(cls)}
    known = OPTIONAL | {name for name in ours if not name.startswith("_")}
    written = visible_methods(udf)
    others = {name for name in written if not name.startswith("_")} - known
    if not others:  # as in nearly all UDFs
        return []
    from difflib import get_close_matches

    wanted, texts = list(known if meant is None else meant), []
    for name in sorted(others - names_in_methods(udf)):
        if near := get_close_matches(name, wanted, n=1, cutoff=cutoff):
            cls = written[name].__name__
            texts.append(f"{cls}.{name} is never called: did you mean {near[0]}?")
    return texts
