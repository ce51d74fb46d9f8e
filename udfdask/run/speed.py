"""Measure how fast a run processes its first chunks, with one thread and with several."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from dask.system import CPU_COUNT
from dask.utils import format_bytes, format_time

from udfdask.advice import Advice, Door
from udfdask.explanation.describe import Explanation
from udfdask.geometry.chunk_grid import BoolArray, Grid

LEAST_GAIN = 0.6
"""Gain of a further thread below which something is in the way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """The times of one chunk with one thread, and of a chunk for each thread at once.

    Examples
    --------
    >>> from udfdask.run.speed import Speed
    >>> speed = Speed(nbytes=1 << 26, n_chunks=64, alone=0.5, threads=4, together=1.9, busy=1.02)
    >>> speed.keeps_lock, speed.gain
    (True, 1.0526315789473684)
    """

    nbytes: int
    """Size of a chunk in bytes."""
    n_chunks: int
    """Number of chunks of the run."""
    alone: float
    """Seconds of one chunk with one thread."""
    threads: int
    """Number of threads, and of chunks that they processed at once."""
    together: float
    """Seconds of these chunks."""
    busy: float
    """Processors that were busy meanwhile."""

    @property
    def gain(self) -> float:
        """How many times as fast all threads are as one."""
        return self.threads * self.alone / self.together

    @property
    def keeps_lock(self) -> bool:
        """Whether one thread works at a time: threads do not help, and one processor is busy."""
        return (
            self.threads > 1
            and self.gain < 1 + LEAST_GAIN * (self.threads - 1)
            and 0.8 < self.busy < 1.3
        )

    @property
    def text(self) -> str:
        """The times in words."""
        whole = format_time(self.n_chunks * self.together / self.threads).strip()
        rate = format_bytes(int(self.threads * self.nbytes / self.together))
        text = f"{rate}/s, {whole} for all; a chunk takes {format_time(self.alone).strip()}"
        if self.threads == 1:
            return text
        return f"{text} with 1 thread, and {self.threads} threads are {self.gain:.1f} times as fast"

    def advice(self, own: str) -> Advice | None:
        """Return what helps if one thread works at a time; `own` are UDFs that the user wrote."""
        if not own or not self.keeps_lock:
            return None
        text = (
            f"{own} keeps Python's lock (GIL): {self.threads} threads are {self.gain:.1f} times "
            f"as fast as 1, and {self.busy:.1f} processors are busy. compute(scheduler="
            '"processes") or a cluster of processes uses all of them; so do threads if the method '
            "calls NumPy on whole tiles (process_tile), or is compiled by numba with nogil=True"
        )
        return Advice("lock", (text,), {"threads": self.threads})


def measure_speed(grid: Grid, frame_bytes: int, run: Callable[[BoolArray, int], None]) -> Speed:
    """Measure the first chunks of a grid; `run` processes the positions of a mask with threads.

    The first run of each is not counted: it reads the file, and compiles kernels.
    """
    threads = min(CPU_COUNT, grid.n_chunks)
    one, several = _mask_of(grid, 1), _mask_of(grid, threads)
    run(several, threads)
    start = time.perf_counter()
    run(one, 1)
    middle, used = time.perf_counter(), time.process_time()
    run(several, threads)
    together = time.perf_counter() - middle
    return Speed(
        nbytes=grid.count(0) * frame_bytes,
        n_chunks=grid.n_chunks,
        alone=middle - start,
        threads=threads,
        together=together,
        busy=(time.process_time() - used) / together,
    )


def _mask_of(grid: Grid, n_chunks: int) -> BoolArray:
    mask = np.zeros(grid.shape, bool)
    for chunk in range(n_chunks):
        mask[tuple(grid.coordinates(chunk).T)] = True
    return mask


def explain_speed(
    explanation: Explanation, speed: Speed, own: Sequence[str], door: Door
) -> Explanation:
    """Return the description of a run with its speed, and with advice if threads do not help.

    `own` are the names of the UDFs that the user wrote.
    """
    advice = speed.advice(", ".join(dict.fromkeys(own)))
    more = () if advice is None else (advice,)
    warnings = tuple(one.said(door) for one in more)
    lines = (("speed", speed.text), *(("warning", text) for text in warnings))
    return replace(
        explanation,
        lines=(*explanation.lines, *lines),
        advice=(*explanation.advice, *more),
        warnings=(*explanation.warnings, *warnings),
    )
