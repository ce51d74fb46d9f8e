"""Notes about a run: what is often right, but good to know."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dask.utils import format_bytes

from udfdask.explanation.costs import small_chunks_note
from udfdask.plan.recipe import CORRECTIONS

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


def notes_of(plan: Plan, about_detectors: Iterable[Note]) -> tuple[Note, ...]:
    """Return all notes about a run; a run of one UDF is that of the UDF."""
    number = 0 if len(plan.recipe.udfs) == 1 else None
    of_run = (Note(text, number) for text in _notes_of_run(plan))
    return (*about_detectors, *_merge_notes(plan), *of_run)


def _merge_notes(plan: Plan) -> Iterator[Note]:
    """Yield why merges run one after another, and what ends that, for UDFs that users wrote."""
    for number, udf in enumerate(plan.recipe.udfs):
        if (
            udf.merge.mode != "chain"
            or plan.recipe.grid.n_chunks < 2
            or udf.cls.__module__.startswith("udfdask.udfs.")
        ):
            continue
        nav = [name for name, spec in udf.allocated.items() if spec.kind == "nav"]
        several, them = ("s", "them") if len(nav) > 1 else ("", "it")
        text = (
            f"{udf.name}: merges run one after another, because merge might compute the nav "
            f"buffer{several} {', '.join(map(repr, nav))} from earlier chunks. If merge only "
            f"assigns {them} (dest.{nav[0]}[:] = src.{nav[0]}), set merge_assigns_nav = True in "
            "the class: then chunks are merged in a tree"
        )
        yield Note(text, number)


def _notes_of_run(plan: Plan) -> Iterator[str]:
    """Yield notes about what a run reads and sends."""
    recipe = plan.recipe
    if recipe.native.is_sparse:
        yield (
            "dask knows only the dense size of sparse chunks; the memory that they need is "
            "proportional to the number of stored values"
        )
    if not plan.advice and (note := small_chunks_note(recipe)):
        yield note.said(plan.door)
    names = {CORRECTIONS: "corrections", **{k: u.name for k, u in enumerate(recipe.udfs)}}
    slots = [(k, p[0] if isinstance(p, tuple) else p) for k, p in recipe.lazy_slots]
    if slots:
        lazy = ", ".join(f"{names[k]}.{p}" for k, p in dict.fromkeys(slots))
        yield f"{lazy} computed first, then passed to every task"
    if recipe.nbytes > (1 << 20):
        yield (
            f"parameters of {format_bytes(recipe.nbytes)} are a task of their own, which a "
            "distributed cluster sends to each worker once; the processes scheduler sends them "
            "with every task"
        )
