"""The commands `udfdask run` and `udfdask explain`."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from importlib.util import find_spec
from pathlib import Path
from time import monotonic
from typing import Any

import click
from dask.base import get_scheduler

from udfdask.advice import COMMAND_LINE
from udfdask.cli.data_options import DataOptions, not_empty, with_data_options
from udfdask.cli.outputs import Outputs, to_out, to_picture
from udfdask.cli.terminal import PLANNING, RUNNING, plain_errors, plain_warnings, summary_table
from udfdask.errors import UDFWarning
from udfdask.explanation.describe import Explanation
from udfdask.graph.inputs import data_files
from udfdask.io.opened_file import OpenedFile
from udfdask.plotting.displays import has_windows
from udfdask.plotting.live import LivePlot
from udfdask.results.result import Result
from udfdask.run.progressive import run_udf_iter
from udfdask.run.run_udf import compute, run_for
from udfdask.scheduling.progress import Bar, ProgressState
from udfdask.scheduling.records.folder import cache as cache_results
from udfdask.scheduling.records.folder import folder_beside, open_folder, remove_folder


def _plan(data: DataOptions) -> tuple[OpenedFile, dict[str, Result], list[str]]:
    """Return the opened file, the lazy results by names of UDFs, and what a user should know."""
    with plain_errors(PLANNING), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UDFWarning)
        opened = data.open()
        lazy = run_for(COMMAND_LINE, opened, data.udfs, sig_dims=None, **data.options(opened))
        texts = (*_plan_of(lazy).warnings, *(str(warning.message) for warning in caught))
    return opened, lazy, list(dict.fromkeys(texts))


def _plan_of(lazy: dict[str, Result]) -> Explanation:
    """Return the description of a run, which all its results have."""
    return next(iter(lazy.values())).explain()


@click.command("explain", short_help="Describe what a run would do, without running it.")
@with_data_options
def explain_command(data: DataOptions) -> None:
    """Describe what `udfdask run` would do with FILE: chunks, tasks, bytes, memory, tiles, merges.

    This command reads no frame. Its options are those of `udfdask run`, which describes them with
    examples.

    \b
    udfdask explain scan.mib --udf com:r=20
    udfdask explain scan.mib --udf stddev --chunks 16,-1,-1,-1 --roi 0:64,0:64
    """  # noqa: D301, click wants the character
    with plain_warnings():
        opened, lazy, _ = _plan(data)
        click.echo(f"{data.headline(opened)}\n\n{_plan_of(lazy)}")


_HELP = {
    "scheduler": "threads, processes, synchronous, or the address of a scheduler: tls://host:port.",
    "out": "Write the results. The suffix says how: .zarr, .nc, .npz, .hspy or .tif.",
    "plot": "Draw the results. The suffix says how: .png, .pdf or .svg.",
    "overwrite": "Replace existing files of --out and --plot if they are of the same kind.",
    "resume": "Keep partial results next to the first --out until it is written: a run that was "
    "interrupted goes on.",
    "cache": "Keep partial results in this folder, and read those that are there.",
    "progress": "Show a progress bar (default).",
    "live": "Show results every two seconds during the run: in a table, in a window if possible.",
}


@click.command("run", short_help="Run UDFs on a file.")
@with_data_options
@click.option("--scheduler", metavar="NAME", help=_HELP["scheduler"])
@click.option("--out", "outs", type=to_out, metavar="PATH", multiple=True, help=_HELP["out"])
@click.option("--plot", type=to_picture, metavar="PATH", help=_HELP["plot"])
@click.option("--overwrite", is_flag=True, help=_HELP["overwrite"])
@click.option("--resume", is_flag=True, help=_HELP["resume"])
@click.option("--cache", type=not_empty, metavar="FOLDER", help=_HELP["cache"])
@click.option("--progress/--no-progress", default=True, help=_HELP["progress"])
@click.option("--live", is_flag=True, help=_HELP["live"])
def run_command(
    data: DataOptions,
    scheduler: str | None,
    outs: Sequence[Path],
    plot: Path | None,
    overwrite: bool,
    resume: bool,
    cache: str | None,
    progress: bool,
    live: bool,
) -> None:
    """Run UDFs on FILE and summarize the results: ready-made ones, or a class in Python code.

    FILE is a .npy file, an HDF5 file, a zarr store, any file that HyperSpy reads, or a raw binary
    file (with --nav-shape, --sig-shape and --dtype). Zarr stores, .npy and raw files can be URLs.

    \b
    udfdask run scan.mib --udf sum --plot sum.png
    udfdask run scan.mib --udf com:cy=64,cx=62 --plot com.png
    udfdask run scan.mib --udf com:r=20 --udf stddev --out found.zarr
    udfdask run scan.mib --udf disk:r=8 --udf ring:ri=12,ro=30 --plot fields.png --live
    udfdask run scan.raw --nav-shape 256,256 --sig-shape 128,128 --dtype uint16
    udfdask run map.bcf --sig-dims 1 --roi 10:40,: --out map.npz
    udfdask run scan.mib --udf mine.py:Peak:r=5 --udf libertem.udf.stddev:StdDevUDF
    udfdask run long.mib --udf sum --udf com --out found.zarr --resume
    """  # noqa: D301, click wants the character
    if resume and (live or not outs):
        raise click.UsageError("--resume needs --out, and does not work with --live")
    if cache and (live or resume):
        raise click.UsageError("--cache does not work with --live or --resume")
    with plain_warnings():
        opened, lazy, notes = _plan(data)
        sources = (data.file, *data_files(opened.array))
        outputs = Outputs(outs=outs, plot=plot, overwrite=overwrite, sources=sources)
        with plain_errors(PLANNING):
            outputs.check(data.udfs, lazy)
        plan = _plan_of(lazy)
        click.echo("\n".join([data.headline(opened), plan.summary, *plan.detectors]))
        for text in notes:
            click.echo(f"warning: {text}", err=True)
        click.echo()
        beside = folder_beside(outs[0]) if resume else None
        with plain_errors(RUNNING), _connected(scheduler) as options:
            if live:
                results = _run_live(opened, data, **options)
            else:
                kept = open_folder(beside, limit=None) if beside else None
                reporter = _Reporter(is_shown=progress)
                with cache_results(cache) if cache else nullcontext():
                    done = compute(*lazy.values(), progress=reporter, cache=kept, **options)
                results = dict(zip(lazy, done, strict=True))
        with plain_errors(PLANNING):
            written = outputs.write(results, opened)
            if beside:
                remove_folder(beside)
        wrote = "".join(f"\nwrote {path}" for path in written)
        click.echo(summary_table(results) + (f"\n{wrote}" if wrote else ""))


class _Reporter(Bar):
    """A progress bar that may be hidden, and says how many chunks are done already."""

    def __init__(self, *, is_shown: bool) -> None:
        super().__init__()
        self._is_shown = is_shown

    def start(self, state: ProgressState) -> None:
        """Print the number of chunks that are done already, and show the bar."""
        if state.num_part_complete:
            click.echo(
                f"{state.num_part_complete} of {state.num_part_total} chunks are done already: "
                "their results were saved by an earlier run\n"
            )
        if self._is_shown:
            super().start(state)


EVERY = 2.0  # seconds between two looks at the results of a run


def _run_live(opened: OpenedFile, data: DataOptions, **options: Any) -> dict[str, Result]:
    """Run and show results during the run, in a table and a window."""
    has_window = find_spec("matplotlib") is not None and has_windows()
    live_plot, due = LivePlot(interval=EVERY) if has_window else None, 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UDFWarning)  # already printed
        options |= data.options(opened)
        snapshots = run_udf_iter(opened, data.udfs, plots=live_plot, **options)
    with snapshots:
        for snapshot in snapshots:
            results = dict(zip(data.udfs, snapshot.buffers, strict=True))
            began = monotonic()
            if snapshot.n_merged < snapshot.n_chunks and began >= due:
                frames = f"{int(snapshot.damage.sum())} frames"
                click.echo(f"{snapshot.n_merged} of {snapshot.n_chunks} chunks, {frames}")
                click.echo(f"{summary_table(results)}\n")
                # the run waits meanwhile: allow at most a fifth of its time
                due = monotonic() + max(EVERY, 4 * (monotonic() - began))
    return results


@contextmanager
def _connected(scheduler: str | None) -> Iterator[dict[str, str]]:
    """Convert ``--scheduler`` to arguments of compute; connect a client if it is an address."""
    client: Any = nullcontext()
    options = {} if scheduler is None else {"scheduler": scheduler}
    with plain_errors(PLANNING):  # no such scheduler, or distributed is not installed
        if scheduler is not None and "://" in scheduler:
            from distributed import Client

            client, options = Client(scheduler, timeout="10s"), {}
        get_scheduler(**options)
    with client:
        yield options
