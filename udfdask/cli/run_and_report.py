"""Plan a run of several UDFs; compute it in one pass, and print the progress and a table."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import dask.array as da

from udfdask.advice import COMMAND_LINE
from udfdask.cli.live import TableView, View, last_snapshot, named_results
from udfdask.cli.scheduler_option import connected
from udfdask.cli.terminal import PLANNING, RUNNING, echo, going_on, plain_errors
from udfdask.errors import ArgumentValueError, UDFWarning
from udfdask.explanation.describe import Explanation
from udfdask.plotting.table import summary_table
from udfdask.records.folder import RecordFolder
from udfdask.records.runs import find_runs, name_of_runs
from udfdask.results.result import Result
from udfdask.run.described_data import DescribedData
from udfdask.run.progressive import Snapshot, run_udf_iter
from udfdask.run.run_udf import compute, run_for
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
def _explaining_resume() -> Iterator[None]:
    """Print how a run goes on if the user has ended it; an error says it itself."""
    try:
        yield
    except Exception:
        raise
    except BaseException as error:  # click prints nothing but "Aborted!"
        for note in getattr(error, "__notes__", ()):
            echo(f"\n{note}", err=True)
        raise


class _Reporter:
    """Prints how many chunks are done already, and shows a bar if there is one."""

    def __init__(self, bar: Bar | None) -> None:
        self._bar = bar

    def start(self, state: ProgressState) -> None:
        """Print the number of chunks that are done already, and show the bar."""
        if state.num_part_complete:
            echo(
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


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRun:
    """A run that has been planned and not started."""

    data: da.Array | DescribedData
    """The data, shape (*nav, *sig)."""
    arguments: dict[str, Any]
    """Arguments of `run_udf` by name."""
    lazy: dict[str, Result]
    """Lazy results by the names of their UDFs."""
    plan: Explanation
    """Description of the run."""
    warnings: tuple[str, ...]
    """What a user should know, each text once."""

    @property
    def name(self) -> str:
        """A name of the run, equal for equal runs in every process; empty if it has none."""
        try:
            axes = [result.calibration.axes for result in self.lazy.values()]
            return name_of_runs(find_runs(self.lazy.values()), (list(self.lazy), axes))
        except ArgumentValueError:
            return ""


def plan_run(data: da.Array | DescribedData, udfs: Mapping[str, UDF], **options: Any) -> PlannedRun:
    """Plan a run of named UDFs; `options` are arguments of `run_udf`."""
    arguments = {"udf": list(udfs.values()), **options}
    with plain_errors(PLANNING), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UDFWarning)
        lazy = run_for(COMMAND_LINE, data, dict(udfs), **{"sig_dims": None, "roi": None, **options})
        plan = next(iter(lazy.values())).explain()
    texts = [*plan.warnings, *(str(warning.message) for warning in caught)]
    return PlannedRun(
        data=data,
        arguments=arguments,
        lazy=lazy,
        plan=plan,
        warnings=tuple(dict.fromkeys(texts)),
    )


def run_in_one_pass(
    run: PlannedRun,
    *,
    scheduler: str | None = None,
    progress: bool = True,
    live: Live | None = None,
    cache: RecordFolder | None = None,
    goes_on: bool = False,
) -> dict[str, Result]:
    """Compute a planned run; print progress and a table, and return the computed results.

    `cache` is the folder with the partial results of this run. If `goes_on`, the run does not end
    if nobody reads its output.
    """
    with plain_errors(RUNNING), _explaining_resume(), connected(scheduler) as options:
        if live is None:
            reporter = _Reporter(Bar() if progress else None)
            done = compute(*run.lazy.values(), progress=reporter, cache=cache, **options)
            results = dict(zip(run.lazy, done, strict=True))
        else:
            results = _run_live(run, live, goes_on=goes_on, progress=progress, **options)
    with going_on(goes_on):
        echo(summary_table(results))
    return results


def _run_live(
    run: PlannedRun, live: Live, *, goes_on: bool, progress: bool, **options: Any
) -> dict[str, Result]:
    """Run and show results during the run; return the computed results."""
    names = list(run.lazy)
    table = TableView(names)

    def show_table(snapshot: Snapshot) -> None:
        with going_on(goes_on):
            table(snapshot)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UDFWarning)  # already printed
        # a table that is updated in place shows the progress; a bar would break its layout
        bar = progress and not table.in_place
        snapshots = run_udf_iter(run.data, **run.arguments, progress=bar, **options)
    with snapshots:
        last = last_snapshot(snapshots, [show_table, *live.views], every=live.every)
    with going_on(goes_on):
        table.clear()
    return named_results(names, last)
