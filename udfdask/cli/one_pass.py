"""A pass over an array as both commands show it: plan, progress, table."""

from __future__ import annotations

import warnings
from typing import Any

import click
import dask.array as da

from udfdask.cli.failures import PLANNING, RUNNING, told_plainly
from udfdask.cli.schedulers import connected
from udfdask.errors import UDFWarning
from udfdask.plotting.table import summary_table
from udfdask.results import Result
from udfdask.run import compute, run_udf
from udfdask.udf import UDF


def run_in_one_pass(
    array: da.Array,
    udfs: dict[str, UDF],
    *,
    sig_dims: int,
    roi: Any = None,
    scheduler: str | None = None,
) -> dict[str, Result]:
    """Take data and UDFs by name; print plan, progress and table, return the computed results."""
    with told_plainly(PLANNING), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UDFWarning)
        lazy = run_udf(array, list(udfs.values()), sig_dims=sig_dims, roi=roi)
    plan = lazy[0].explain()
    click.echo(f"{plan}\n")
    # What the plan has not said already.
    for message in dict.fromkeys(str(warning.message) for warning in caught):
        if message not in plan.warnings:
            click.echo(f"warning: {message}\n", err=True)
    with told_plainly(RUNNING), connected(scheduler) as options:
        done = compute(*lazy, progress=True, **options)
    results = dict(zip(udfs, done, strict=True))
    click.echo(f"{summary_table(results)}\n")
    return results
