"""Advice about a run: what is the matter, in numbers, and the changes that help.

A plan holds advice as values. They become text once, for the `Door` through which the user came:
the same change is ``array.rechunk((4, 8, -1, -1))`` for a dask array, ``array.chunk({'y': 4})`` for
a DataArray, ``signal.rechunk(nav_chunks=(4, 8), ...)`` for a signal, and ``--chunks 4,8,-1,-1`` on
the command line. No module reads a text that another one made.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

_MADE = "where the array is made or the file is opened"


@dataclass(frozen=True, slots=True)
class Door:
    """The entry point that a user calls.

    Examples
    --------
    >>> from udfdask.advice import Door, Rechunk
    >>> Rechunk((4, -1), n_sig=1).called(Door("dataarray", ("y", "kx")))
    "array.chunk({'y': 4, 'kx': -1})"
    """

    kind: Literal["array", "dataarray", "signal", "command line"] = "array"
    dims: tuple[Hashable, ...] = ()
    """Names of the dimensions of a DataArray, in the order (*nav, *sig)."""


ARRAY = Door()
SIGNAL = Door("signal")
COMMAND_LINE = Door("command line")


class Remedy(Protocol):
    """A change that helps."""

    def called(self, door: Door) -> str:
        """Return what the user writes."""


@dataclass(frozen=True, slots=True)
class Rechunk:
    """Other chunks for an array that exists."""

    chunks: tuple[int, ...]
    """Sizes along each axis; -1 for a whole axis."""
    n_sig: int
    """Number of signal axes."""
    keeps_nav: bool = False
    """Whether the chunks along navigation axes can stay as they are."""

    def called(self, door: Door) -> str:
        """Return the call, or the option of the command line."""
        first = len(self.chunks) - self.n_sig
        every = dict(enumerate(self.chunks))
        changed = {k: n for k, n in every.items() if k >= first or not self.keeps_nav}
        match door.kind:
            case "command line":
                return _option("chunks", self.chunks)
            case "dataarray":
                return f"array.chunk({ {door.dims[k]: n for k, n in changed.items()} })"
            case "signal":  # without `nav_chunks`, HyperSpy would choose others
                return f"signal.rechunk(nav_chunks={self.chunks[:first]}, sig_chunks=-1)"
            case _:
                return f"array.rechunk({changed if self.keeps_nav else self.chunks})"


@dataclass(frozen=True, slots=True)
class MakeChunks:
    """Other chunks from the start, which cost nothing; where there is an array, also a rechunk."""

    rechunk: Rechunk

    def called(self, door: Door) -> str:
        """Return the argument, and the call that cuts an array that exists."""
        chunks = self.rechunk.chunks
        if door.kind == "command line":
            return _option("chunks", chunks)
        named = dict(zip(door.dims, chunks, strict=True)) if door.kind == "dataarray" else chunks
        return f"chunks={named} {_MADE}, or {self.rechunk.called(door)}"


@dataclass(frozen=True, slots=True)
class SetOption:
    """Another value of an option of the run."""

    name: str
    value: int | str

    def called(self, door: Door) -> str:
        """Return the argument."""
        if door.kind == "command line":
            return _option(self.name, self.value)
        return f"{self.name}={self.value!r}"


@dataclass(frozen=True, slots=True)
class FileCorrections:
    """The corrections that an opened file has."""

    def called(self, door: Door) -> str:
        """Return the argument."""
        if door.kind == "command line":
            return "--correct"
        return "corrections=opened.corrections, or CorrectionSet() for the stored values"


@dataclass(frozen=True, slots=True)
class Advice:
    """What is the matter with a run, and what to change.

    Examples
    --------
    >>> from udfdask.advice import Advice, Rechunk, SIGNAL
    >>> advice = Advice("large tasks", ("a task takes 4 GiB: ", Rechunk((4, 8, -1), n_sig=1)))
    >>> print(advice.said(SIGNAL))
    a task takes 4 GiB: signal.rechunk(nav_chunks=(4, 8), sig_chunks=-1)
    """

    kind: str
    """The same word for the same problem."""
    parts: tuple[str | Remedy, ...]
    """Texts, and the changes between them."""
    numbers: Mapping[str, int] = field(default_factory=dict)
    """What the text tells: bytes and counts by name."""

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        """The changes that help."""
        return tuple(part for part in self.parts if not isinstance(part, str))

    def said(self, door: Door) -> str:
        """Return the text, with what the user of an entry point writes."""
        return "".join(p if isinstance(p, str) else p.called(door) for p in self.parts)


def _option(name: str, value: object) -> str:
    """Return an option of the command line with its value."""
    typed = ",".join(map(str, value)) if isinstance(value, tuple) else str(value).replace(" ", "")
    return f"--{name.replace('_', '-')} {typed}"
