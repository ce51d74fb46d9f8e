"""Say in the words of xarray what warnings say with methods that only dask arrays have."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Sequence

_SIZES = r"\(([-\d, ]+)\)"
_MADE = "where the array is made or the file is opened"


def in_words_of_dataarrays(dims: Sequence[Hashable]) -> Callable[[str], str]:
    """Return a function that names dimensions and `chunk` in a text about chunks.

    Parameters
    ----------
    dims : sequence of hashable
        Names of the dimensions in the order of the array that runs, (*nav, *sig).

    Examples
    --------
    >>> from udfdask.xarray.words import in_words_of_dataarrays
    >>> in_words_of_dataarrays(["y", "kx"])("array.rechunk({1: -1}) or array.rechunk((4, -1))")
    "array.chunk({'kx': -1}) or array.chunk({'y': 4, 'kx': -1})"
    """

    def sizes(match: re.Match[str]) -> str:
        numbers = map(int, re.findall(r"-?\d+", match[1]))
        return repr(dict(zip(dims, numbers, strict=True)))

    def some(match: re.Match[str]) -> str:
        axes = re.findall(r"(\d+): (-?\d+)", match[1])
        chunks = {dims[int(axis)]: int(n) for axis, n in axes}
        return f"array.chunk({chunks})"

    def in_words(text: str) -> str:
        text = re.sub(r"array\.rechunk\(\{([^}]*)\}\)", some, text)
        text = re.sub(rf"array\.rechunk\({_SIZES}\)", lambda m: f"array.chunk({sizes(m)})", text)
        return re.sub(rf"chunks={_SIZES} {_MADE}", lambda m: f"chunks={sizes(m)} {_MADE}", text)

    return in_words
