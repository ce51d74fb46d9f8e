"""Run UDFs in one pass, and print the plan, the progress and a table."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import click
import dask.array as da

from udfdask.cli.failures import PLANNING, RUNNING, plain_errors
from udfdask.cli.live import TableView, View, last_snapshot, named_results
from udfdask.cli.scheduler_option import connected
from udfdask.errors import JournalError, UDFWarning
from udfdask.plotting.table import summary_table
from udfdask.records.journal import has_records
from udfdask.results.result import Result
from udfdask.run.described_data import DescribedData
from udfdask.run.progressive import run_udf_iter
from udfdask.run.run_udf import compute, run_udf
from udfdask.scheduling.progress.reporters import Bar
from udfdask.scheduling.progress.state import ProgressState
from udfdask.udf import UDF


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """How to show results during a run."""

    every: float
    """Seconds between two updates."""
    views: Sequence[View] = ()
    """Views of snapshots in addition to the table."""


@contextmanager
def _explaining_resume(journal: str | None) -> Iterator[None]:
    """Say how a run with a journal goes on: in the error, or printed if the user has ended it."""
    try:
        yield
    except JournalError as error:
        error.add_note("With --resume, choose another --out to use another journal")
        raise
    except BaseException as error:
        if journal is not None and has_records(journal):
            text = f"Partial results are saved in {journal}: repeat the command to go on"
            if isinstance(error, Exception):
                error.add_note(text)
            else:  # click prints nothing but "Aborted!"
                click.echo(f"\n{text}", err=True)
        raise


class _Reporter:
    """Prints how many chunks are done already, and shows a bar if there is one."""

    def __init__(self, bar: Bar | None) -> None:
        self._bar = bar

    def start(self, state: ProgressState) -> None:
        """Print the number of chunks that are done already, and show the bar."""
        if state.num_part_complete:
            click.echo(
                f"{state.num_part_complete} of {state.num_part_total} chunks are done already: "
                "their results were saved by an earlier run\n"
            )
        if self._bar is not None:
            self._bar.start(state)

    def update(self, state: ProgressState) -> None:
        """Update the bar."""
        if self._bar is not None:
            self._bar.update(state)

    def end(self, state: ProgressState) -> None:
        """Close the bar."""
        if self._bar is not None:
            self._bar.end(state)


def run_in_one_pass(
    array: da.Array | DescribedData,
    udfs: dict[str, UDF],
    *,
    sig_dims: int | None = None,
    roi: Any = None,
    scheduler: str | None = None,
    timeout: str | None = None,
    progress: bool = True,
    live: Live | None = None,
    journal: str | None = None,
    max_memory: str | None = None,
) -> dict[str, Result]:
    """Run named UDFs; print the plan, progress and table, and return the computed results.

    `journal` is the folder of the journal of this run.
    """
    arguments = {
        "udf": list(udfs.values()),
        "sig_dims": sig_dims,
        "roi": roi,
        "max_memory": max_memory,
    }
    with plain_errors(PLANNING), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UDFWarning)
        lazy = run_udf(array, **arguments)
    plan = lazy[0].explain()
    click.echo(f"{plan}\n")
    # Print only warnings that the plan does not already contain.
    for message in dict.fromkeys(str(warning.message) for warning in caught):
        if message not in plan.warnings:
            click.echo(f"warning: {message}\n", err=True)
    with plain_errors(RUNNING), _explaining_resume(journal), connected(scheduler) as options:
        if live is None:
            reporter = _Reporter(Bar() if progress else None)
            done = compute(*lazy, progress=reporter, timeout=timeout, journal=journal, **options)
            results = dict(zip(udfs, done, strict=True))
        else:
            results = _run_live(
                array, arguments, list(udfs), live, progress=progress, timeout=timeout, **options
            )
    click.echo(f"{summary_table(results)}\n")
    return results


def _run_live(
    array: da.Array | DescribedData,
    arguments: dict[str, Any],
    names: list[str],
    live: Live,
    *,
    progress: bool,
    **options: Any,
) -> dict[str, Result]:
    """Run and show results during the run; return the computed results."""
    table = TableView(names)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UDFWarning)  # already printed
        # a table that is updated in place shows the progress; a bar would break its layout
        bar = progress and not table.in_place
        snapshots = run_udf_iter(array, **arguments, progress=bar, **options)
    with snapshots:
        last = last_snapshot(snapshots, [table, *live.views], every=live.every)
    table.clear()
    return named_results(names, last)
