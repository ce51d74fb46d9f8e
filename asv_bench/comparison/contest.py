"""Runs a case by everyone who can, in turns, and compares what they find."""

from __future__ import annotations

import math
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
from distributed import Client

from benchmarks.layouts import LAYOUTS, make_file, opened
from comparison import bare, by_dask, by_libertem, by_udfdask
from comparison.by_libertem import LiberTEM
from comparison.cases import Case

Results = dict[str, np.ndarray]

LIBRARIES = ("dask", "udfdask", "LiberTEM")
"""Whose contestants are named after the library and the executor."""


@dataclass(kw_only=True)
class Outcome:
    """What came out of a case."""

    case: Case
    shape: tuple[int, ...]
    """Shape of the data set."""
    dtype: str
    nbytes: int
    """Size of the data set in bytes."""
    seconds: dict[str, float] = field(default_factory=dict)
    """Best time of each contestant, in seconds, with its best executor."""
    said: dict[str, str] = field(default_factory=dict)
    """Why a contestant has no time: "not there: ...", "failed: ..."."""
    executors: dict[str, str] = field(default_factory=dict)
    """The best executor of each library."""
    differences: list[str] = field(default_factory=list)
    """Where results differ from those of the dask expression."""

    @property
    def pixels(self) -> int:
        """Number of pixels of all frames."""
        return math.prod(self.shape)

    @property
    def failed(self) -> bool:
        """Whether somebody raised, or found something else."""
        return bool(self.differences) or any(s.startswith("failed") for s in self.said.values())


def run_case(
    case: Case,
    *,
    gigabytes: float,
    folder: Path,
    threads: int,
    repeats: int,
    peer: LiberTEM | None,
    processes: Client | None = None,
    executors: tuple[str, ...] = by_libertem.EXECUTORS,
    patience: float = np.inf,
) -> Outcome:
    """Return the best times of a case, and whether the results agree.

    Everyone takes an untimed turn, in which code is compiled and results are compared; then come
    `repeats` rounds. A turn opens the file, builds what is to be computed, and computes it. Who
    has used more than `patience` seconds in two rounds takes no further turn. For dask, which
    compiles nothing, an untimed turn of that length is enough. dask and udfdask also run functions
    of users in `processes`, a cluster of as many workers, if it is given.
    """
    layout = LAYOUTS[case.layout]
    path = make_file(layout, gigabytes * case.share, folder)
    x = opened(path, layout)
    outcome = Outcome(case=case, shape=x.shape, dtype=str(x.dtype), nbytes=x.nbytes)
    store = _zarr_copy(path, x) if case.zarr else None

    def open_anew() -> da.Array:
        return opened(path, layout) if store is None else da.from_zarr(store)

    def compute(module: Any, work: str, scheduler: Any = "threads") -> Results:
        found: Results = {}
        for one in module.WORK[work]:
            lazy = one(open_anew())
            found.update(dask.compute(lazy, scheduler=scheduler, num_workers=threads)[0])
        return found

    def read() -> Results:
        if store is None:
            bare.read_npy(path, threads)
        else:
            bare.read_zarr(store, threads)
        return {}

    entrants: dict[str, Callable[[], Results]] = {
        "read": read,
        "dask threads": lambda: compute(by_dask, case.work),
        "udfdask threads": lambda: compute(by_udfdask, case.work),
    }
    if processes is not None and case.own:
        entrants["dask processes"] = lambda: compute(by_dask, case.work, processes)
        entrants["udfdask processes"] = lambda: compute(by_udfdask, case.work, processes)
    if case.apart is not None:
        entrants["apart"] = lambda: compute(by_udfdask, case.apart)
    if case.bare is not None:
        entrants["bare"] = lambda: bare.BARE[case.bare](path, threads)
    if peer is None:
        outcome.said["LiberTEM"] = "left out"
    else:
        for executor in executors:
            data = path if store is None else open_anew
            entrants[f"LiberTEM {executor}"] = lambda e=executor, d=data: peer.compute(
                case.work, d if isinstance(d, Path) else d(), e
            )
    found, first = {}, {}
    for name, results, taken in _first_turns(entrants, outcome):
        found[name], first[name] = results, taken
    times = {n: first[n] for n in found if n.startswith("dask") and first[n] > patience}
    turns = {name: entrants[name] for name in found if name not in times}
    times |= _take_turns(turns, repeats, patience)
    _settle(outcome, times, found)
    return outcome


def _first_turns(
    entrants: dict[str, Callable[[], Results]], outcome: Outcome
) -> Iterator[tuple[str, Results, float]]:
    """Yield what everyone finds in the first turn, and the seconds it took; note who fails."""
    for name, turn in entrants.items():
        wait_for_idle_threads()
        start = time.perf_counter()
        try:
            yield name, turn(), time.perf_counter() - start
        except Exception as error:  # noqa: BLE001  # the others go on
            traceback.print_exc()
            outcome.said[name] = f"failed: {type(error).__name__}"


def _take_turns(
    turns: dict[str, Callable[[], Results]], repeats: int, patience: float
) -> dict[str, float]:
    """Return the best time of each, in seconds; slower executors leave after a round."""
    best = dict.fromkeys(turns, np.inf)
    used = dict.fromkeys(turns, 0.0)
    for number in range(repeats):
        for name, turn in turns.items():
            wait_for_idle_threads()
            start = time.perf_counter()
            turn()
            taken = time.perf_counter() - start
            best[name] = min(best[name], taken)
            used[name] += taken
        fastest = {library: _fastest(library, best) for library in LIBRARIES}
        slower = {n for n in turns if fastest.get(n.split()[0], n) != n}
        # a single turn can be slow by chance
        done = {n for n in turns if number and used[n] > patience}
        turns = {n: t for n, t in turns.items() if n not in slower | done}
    return best


def _fastest(library: str, times: dict[str, float]) -> str | None:
    """Return the name of the contestant that is the best executor of a library."""
    return min((n for n in times if n.split()[0] == library), key=times.__getitem__, default=None)


def wait_for_idle_threads() -> None:
    """Wait until no thread of this process uses a core, at most a second.

    After a product, OpenBLAS's threads look for work for about 0.1 s. On two cores, udfdask took up
    to 1.7 times as long if its turn came directly after dask's products.
    """
    for _ in range(50):
        before = time.process_time()
        time.sleep(0.02)
        if time.process_time() - before < 0.001:
            return


def _settle(outcome: Outcome, times: dict[str, float], found: dict[str, Results]) -> None:
    """Put the best executors in the place of libraries, and compare all results with dask's."""
    outcome.seconds = {n: t for n, t in times.items() if n.split()[0] not in LIBRARIES}
    for library in LIBRARIES:
        if name := _fastest(library, times):
            outcome.seconds[library] = times[name]
            outcome.executors[library] = name.split()[1]
        else:
            outcome.said.setdefault(library, "failed: see above")
    expected = found.get("dask threads", {})
    for name, results in found.items():
        if name == "read":
            continue
        if set(results) != set(expected):
            outcome.differences.append(f"{name} has {sorted(results)}, not {sorted(expected)}")
        for key in set(results) & set(expected):
            if not agree(results[key], expected[key]):
                outcome.differences.append(f"{name}: {key}")


def agree(one: np.ndarray, other: np.ndarray) -> bool:
    """Return whether results are equal, or as close as the coarser of their dtypes allows."""
    if one.shape != other.shape:
        return False
    if one.dtype.kind in "iub" and other.dtype.kind in "iub":
        return bool(np.array_equal(one, other))
    eps = max(np.finfo(a.dtype).eps for a in (one, other) if a.dtype.kind == "f")
    scale = float(np.abs(other).max(initial=0.0))
    # thousands of frames are added up, each addition rounds
    return bool(np.allclose(one, other, rtol=1e3 * eps, atol=1e3 * eps * scale))


def _zarr_copy(path: Path, x: da.Array) -> Path:
    """Return a zarr store of the same data in chunks half as large, made if it is not there."""
    import zarr

    store = path.with_suffix(".zarr")
    if not store.exists():
        unfinished = path.with_suffix(".zarr.part")
        rows = max(1, x.chunksize[0] // 2)
        x = x.rechunk((rows, *x.chunksize[1:]))
        target = zarr.create_array(
            unfinished, shape=x.shape, chunks=x.chunksize, dtype=x.dtype, overwrite=True
        )
        da.store(x, target, scheduler="synchronous")
        unfinished.rename(store)
    return store
