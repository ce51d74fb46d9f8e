"""Goals for udfdask compared with the others, and whether this run reached them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from comparison.contest import Outcome

Outcomes = Mapping[str, Outcome]


@dataclass(frozen=True, kw_only=True)
class Goal:
    """A ratio that has to be reached."""

    text: str
    least: float
    cases: tuple[str, ...]
    """Names of the cases that it looks at."""
    found: Callable[..., float]
    """Takes their outcomes."""


def _compared(other: str) -> Callable[[Outcome], float]:
    """Return what tells how many times faster than another contestant udfdask is."""
    return lambda one: one.seconds[other] / one.seconds["udfdask"]


def _pixels(one: Outcome, other: Outcome) -> float:
    """Return how many times as many pixels a second are read in the first case."""
    per_pixel = [o.seconds["udfdask"] / o.pixels for o in (one, other)]
    return per_pixel[1] / per_pixel[0]


def _less_shared_reads(five: Outcome) -> float:
    """Return the time of separate runs, less the reads that they could have shared."""
    return (five.seconds["apart"] - 4 * five.seconds["read"]) / five.seconds["udfdask"]


def _of_one(case: str, text: str, other: str, least: float) -> Goal:
    return Goal(text=text, least=least, cases=(case,), found=_compared(other))


FOUR = {
    "sum": "sum over the frames",
    "sumsig": "sum over the pixels",
    "stddev": "variance",
    "com": "center of mass",
}

NAMES = {"read": "bare read", "LiberTEM": "LiberTEM"}

GOALS = [
    *(_of_one(case, f"{title}: LiberTEM", "LiberTEM", 5) for case, title in FOUR.items()),
    *(_of_one(case, f"{title}: bare read", "read", 0.6) for case, title in FOUR.items()),
    _of_one("masks", "16 dense masks: LiberTEM", "LiberTEM", 1.7),
    _of_one("masks", "16 dense masks: convert and multiply each tile, bare", "bare", 0.9),
    _of_one("rings", "500 sparse masks: LiberTEM", "LiberTEM", 2),
    Goal(
        text="five in one pass: one by one, less four reads",
        least=1,
        cases=("five",),
        found=_less_shared_reads,
    ),
    _of_one("five-zarr", "five in one pass, compressed zarr: one by one", "apart", 1 / 0.6),
    _of_one("corrected", "dark, gain, sum: `((x - dark) * gain).sum()` in dask", "dask", 8),
    _of_one("corrected", "dark, gain, sum: LiberTEM", "LiberTEM", 1),
    _of_one("patched", "dark, gain, broken pixels, sum: LiberTEM", "LiberTEM", 1),
    *(
        _of_one(f"{case}-f4", f"{FOUR[case]}, float32: {NAMES[other]}", other, least)
        for case in ("sum", "sumsig")
        for other, least in (("read", 0.6), ("LiberTEM", 1))
    ),
    *(
        Goal(
            text=f"{FOUR[case]}, {kind}: uint16, by pixels",
            least=least,
            cases=(f"{case}-{short}", case),
            found=_pixels,
        )
        for case in ("sum", "sumsig")
        for short, kind, least in (("u1", "uint8", 1), ("be", "big-endian", 1 / 1.5))
    ),
    _of_one("extremes", "the same `process_tile`: LiberTEM", "LiberTEM", 1),
    _of_one("spectra", "`map_frames` with an FFT: a loop in `map_blocks`", "dask", 0.95),
]

FIRST_CALL_SECONDS = 3.0
"""Longest first call in a fresh process, imports included, with a warm cache of numba."""


def goals_table(outcomes: Outcomes, first_calls: Mapping[str, float]) -> str:
    """Return the table of all goals whose cases were run by those whom they compare.

    `first_calls` holds the seconds of a fresh process by kind of work.
    """
    lines = ["| compared with | at least | found | |", "|---|---|---|---|"]
    for goal in GOALS:
        if not all(case in outcomes for case in goal.cases):
            continue
        try:
            found = goal.found(*(outcomes[case] for case in goal.cases))
        except KeyError:  # somebody is not there
            continue
        lines.append(_line(goal.text, f"{goal.least:.2f}", f"{found:.2f}", found >= goal.least))
    for work, seconds in first_calls.items():
        text = f"a fresh process, {work}, with a warm cache of numba"
        most = f"at most {FIRST_CALL_SECONDS:.0f} s"
        lines.append(_line(text, most, f"{seconds:.2f} s", seconds <= FIRST_CALL_SECONDS))
    return "\n".join(lines) + "\n"


def _line(text: str, asked: str, found: str, reached: bool) -> str:
    return f"| {text} | {asked} | {found} | {'reached' if reached else '**missed**'} |"
