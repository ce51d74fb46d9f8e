"""Run UDFs in one pass, and print the plan, the progress and a table."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import click
import dask.array as da

from udfdask.cli.failures import PLANNING, RUNNING, plain_errors
from udfdask.cli.live import TableView, View, last_snapshot, named_results
from udfdask.cli.scheduler_option import connected
from udfdask.errors import UDFWarning
from udfdask.plotting.table import summary_table
from udfdask.results.result import Result
from udfdask.run.progressive import run_udf_iter
from udfdask.run.run_udf import compute, run_udf
from udfdask.udf import UDF


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """How to show results during a run."""

    every: float
    """Seconds between two updates."""
    views: Sequence[View] = ()
    """Views of snapshots in addition to the table."""


def run_in_one_pass(
    array: da.Array,
    udfs: dict[str, UDF],
    *,
    sig_dims: int,
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
    with plain_errors(RUNNING), connected(scheduler) as options:
        if live is None:
            done = compute(*lazy, progress=progress, timeout=timeout, journal=journal, **options)
            results = dict(zip(udfs, done, strict=True))
        else:
            results = _run_live(
                array, arguments, list(udfs), live, progress=progress, timeout=timeout, **options
            )
    click.echo(f"{summary_table(results)}\n")
    return results


def _run_live(
    array: da.Array,
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
