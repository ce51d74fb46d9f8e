"""Notes about a run: what is often right, but good to know.

Merges of own UDFs that run one after another, or are not needed, have a note with what to declare.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from udfdask.plan.plan import Plan


@dataclass(frozen=True, slots=True)
class Note:
    """A note of `explain`, and the UDF that it is about."""

    text: str
    """One or more sentences; with several UDFs, the name of the UDF comes first."""
    udf: int | None
    """Number of the UDF in the run; None if the note is about a run of several."""
    is_about_values: bool = False
    """Whether it matters after the run too: computed results show such notes."""


def merge_notes(plan: Plan) -> list[Note]:
    """Return notes about the merges of the UDFs that users wrote, if there is more than a chunk."""
    if plan.recipe.grid.n_chunks < 2:
        return []
    notes: list[Note] = []
    for number, udf in enumerate(plan.recipe.udfs):
        nav = [name for name, spec in udf.allocated.items() if spec.kind == "nav"]
        if udf.cls.__module__.startswith("udfdask.udfs."):
            continue  # their users cannot change them
        if udf.merge.mode == "chain":
            notes.append(Note(chain_note(udf.name, nav), number))
        elif udf.merge.mode == "rows":
            notes.append(Note(rows_note(udf.name, nav), number))
    return notes


def chain_note(name: str, nav: Sequence[str]) -> str:
    """Return why merges run one after another, and what ends that; `nav`: names of nav buffers."""
    return (
        f"{name}: merges run one after another, because merge might compute {_several(nav)} from "
        f"earlier chunks. If merge only assigns {_them(nav)} ({_lines(nav)}), set "
        "merge_assigns_nav = True in the class: then chunks are merged in a tree"
    )


def rows_note(name: str, nav: Sequence[str]) -> str:
    """Return that a merge of nav buffers is usually not needed; `nav`: names of nav buffers."""
    return (
        f"{name}: merge is called for each chunk, but udfdask joins nav buffers itself. If merge "
        f"only assigns {_them(nav)} ({_lines(nav)}), leave it out: then there are fewer tasks"
    )


def _several(nav: Sequence[str]) -> str:
    """Return the names of nav buffers in words."""
    return f"the nav buffer{'s' * (len(nav) > 1)} {', '.join(map(repr, nav))}"


def _them(nav: Sequence[str]) -> str:
    return "them" if len(nav) > 1 else "it"


def _lines(nav: Sequence[str]) -> str:
    """Return the assignment that such a merge consists of."""
    return f"dest.{nav[0]}[:] = src.{nav[0]}"
