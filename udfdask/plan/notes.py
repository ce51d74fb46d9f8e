"""A note about a run: what is often right, but good to know."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Note:
    """A note of `explain`, and the UDF that it is about."""

    text: str
    """One or more sentences; with several UDFs, the name of the UDF comes first."""
    udf: int | None
    """Number of the UDF in the run; None if the note is about a run of several."""
    is_about_values: bool = False
    """Whether it matters after the run too: computed results show such notes."""
