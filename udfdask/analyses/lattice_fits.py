"""Fit a lattice to the disks of each frame."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import dask.array as da
import numpy as np

from udfdask.analyses.earlier_results import as_lazy, run_over, take_array
from udfdask.analyses.lattice import fit_lattices, guess_lattice, spans_plane
from udfdask.base.types import AnyArray, is_lazy
from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.geometry.axes import Axis
from udfdask.geometry.roi import Region
from udfdask.masks import checks
from udfdask.results.result import Result
from udfdask.run.run_with_parameters import as_dask, takes_parameters_of
from udfdask.udf import UDF
from udfdask.udf.buffers import BufferSpec
from udfdask.udf.promises import Promises
from udfdask.udfs.shared.templates import read_array

POSITIONS = ("positions", "refineds")
"""Names of positions among the results of `FindDisksUDF` and `CorrelationUDF`."""

STRENGTHS = ("intensity", "peak_values")
"""Names of the strengths of disks among their results."""

FIRST_ROWS = "first rows"
"""Value of `guess` if each frame begins with its guess."""

MOST_FRAMES = 2**16
"""Number of frames whose disks are collected for a guess, at most about."""


class FitLatticeUDF(UDF):
    """Fit a lattice to the disks of each frame; its frames are lists of positions.

    Parameters
    ----------
    guess : array-like of real numbers, shape (3, 2), or "first rows"
        Origin and the vectors `a` and `b` as rows (y, x), in pixels, as `guess_lattice` returns
        them; it can be lazy. With "first rows", each frame begins with the rows of its guess.
    max_distance : float, optional
        Largest distance, in pixels, of a disk that belongs to the lattice. By default, and at most,
        a quarter of the shorter vector.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If a parameter has a wrong type, shape or value, or the vectors of the guess are parallel;
        in `run_udf`, if the frames are not of shape (n, 2) or (n, 3), with n of 3 or more.

    See Also
    --------
    fit_lattice : Makes the guess and runs this UDF.

    Notes
    -----
    A frame has the positions (y, x) of n disks, in pixels, and perhaps a weight in a third column;
    NaN where there is no disk. Buffers, all of kind nav; vectors are (y, x) in pixels:

    - `origin`, `a`, `b`, extra shape (2,), float64: disks are at ``origin + h * a + k * b``.
    - `residual`, float64: root mean square of the distances of used disks from there, in pixels.
    - `num_used`, int32: number of the disks that were used.
    - `indices`, extra shape (n, 2), int16: orders (h, k); 0 and not valid for disks not used.

    Frames with less than three disks that are not on a line are NaN and not valid.

    The fit begins with the disks around the origin, which is within half a cell of the guess, and
    goes on to those farther out. Its first steps are robust: a disk at distance d has the weight
    ``1 / (1 + (d / median)**2)``. The last ones are least squares, without the disks farther than
    four times the median. Vectors that differ from the guess by a quarter of the shorter one are
    not valid. If less than half of eight disks or more belong to a lattice near the guess, as in
    another grain, the frame makes a guess of its own, with vectors as similar as possible.

    If positions have the standard deviation s along each axis, that of a component of `a` is
    ``s / sqrt(sum(h**2))`` for disks around the origin on all sides.

    Examples
    --------
    >>> import dask.array as da, numpy as np, udfdask as ud
    >>> from udfdask.analyses import FitLatticeUDF
    >>> orders = np.array([(h, k) for h in range(-1, 2) for k in range(-1, 2)])
    >>> disks = (30, 32) + orders @ np.array([(12.0, 1.0), (-1.0, 12.4)])
    >>> disks[4] = np.nan  # the central disk is missing
    >>> x = da.from_array(np.stack([disks, disks + 0.5]), chunks=(1, 9, 2))
    >>> udf = FitLatticeUDF([(30, 32), (12, 1), (-1, 12)])
    >>> fit = ud.run_udf(x, udf).compute()
    >>> print(fit["b"][1].round(2), fit["origin"][1].round(2), fit["num_used"])
    [-1.  12.4] [30.5 32.5] [8 8]
    """

    whole_frames = True
    elementwise_results = True
    default_plots: ClassVar[tuple[str, ...]] = ("num_used", "residual")
    promises = Promises(declares_once=True)

    def __init__(self, guess: Any, *, max_distance: float | None = None) -> None:
        if max_distance is not None:
            max_distance = checks.radius("max_distance", max_distance, positive=True)
        super().__init__(guess=_checked_guess(guess), max_distance=max_distance)

    @property
    def _first(self) -> int:
        """The number of rows before the disks."""
        return 3 if isinstance(self.params.guess, str) else 0

    def get_result_buffers(self) -> Mapping[str, BufferSpec]:
        sig, dtype = tuple(self.meta.dataset_shape.sig), self.meta.input_dtype
        n = sig[0] - self._first
        if len(sig) != 2 or n < 3 or sig[1] not in (2, 3):
            raise ArgumentValueError(
                "FitLatticeUDF needs lists of three disks or more in each frame, shape (n, 2), or "
                f"(n, 3) with weights, but they have the shape {(n, *sig[1:])}: pass the result "
                "'positions' of a FindDisksUDF, whose max_disks is 3 or more"
            )
        if dtype.kind != "f":
            raise ArgumentTypeError(f"positions must be real numbers, not of dtype {dtype}")
        vector = self.buffer("nav", (2,), "float64")
        return {
            **dict.fromkeys(("origin", "a", "b"), vector),
            "residual": self.buffer("nav", dtype="float64"),
            "num_used": self.buffer("nav", dtype="int32"),
            "indices": self.buffer("nav", (n, 2), "int16"),
            "used": self.buffer("nav", (n,), "bool", use="private"),
        }

    def get_result_axes(self) -> Mapping[str, tuple[Axis, ...]]:
        component = Axis(name="component", labels=("y", "x"))
        indices = Axis(name="disk"), Axis(name="order", labels=("h", "k"))
        vectors = dict.fromkeys(("origin", "a", "b"), (component,))
        return {**vectors, "indices": indices}

    def get_result_units(self) -> Mapping[str, str | None]:
        in_pixels = dict.fromkeys(("origin", "a", "b", "residual"), "px")
        return {**in_pixels, "num_used": "", "indices": ""}

    def process_tile(self, tile: AnyArray) -> None:
        p, results, rows = self.params, self.results, tile.astype(np.float64)
        guess = rows[:, :3, :2] if self._first else p.guess
        disks = rows[:, self._first :]
        weights = disks[..., 2] if disks.shape[-1] == 3 else None
        fits = fit_lattices(disks[..., :2], weights, guess, p.max_distance)
        results.origin[:], results.a[:], results.b[:] = np.moveaxis(fits.lattices, 1, 0)
        results.residual[:], results.num_used[:] = fits.residual, fits.used.sum(axis=1)
        results.indices[:], results.used[:] = fits.indices, fits.used

    def get_results(self) -> Mapping[str, Any]:
        fits = self.results
        known = fits.num_used > 0  # frames that are not merged yet have none
        found: dict[str, Any] = {}
        for name in ("origin", "a", "b", "residual"):
            values = getattr(fits, name)
            mask = known.reshape((-1, *(1,) * (values.ndim - 1)))
            found[name] = self.with_mask(np.where(mask, values, np.nan), mask)
        indices = self.with_mask(fits.indices, fits.used[..., np.newaxis])
        return {**found, "num_used": fits.num_used, "indices": indices}


def _checked_guess(given: Any) -> Any:
    """Return a lattice as a NumPy array (3, 2), float64; lazy if it is lazy; or FIRST_ROWS."""
    if isinstance(given, str) and given == FIRST_ROWS:
        return given
    wrong = "guess must be an origin and two vectors, as guess_lattice returns, not {given!r:.60}"
    array = read_array("guess", given, (3, 2), wrong)
    if not is_lazy(array) and not spans_plane(array[1:]):
        raise ArgumentValueError(f"guess has parallel vectors, {array[1:].tolist()}")
    return array.astype(np.float64)


@takes_parameters_of(FitLatticeUDF)
def fit_lattice(
    disks: Any, *, guess: Any = None, weights: Any = None, roi: Region | None = None, **options: Any
) -> Result[da.Array]:
    """Fit a lattice to the disks that were found in each frame; nothing is computed yet.

    Parameters
    ----------
    disks : Result, or array of real numbers, shape (*nav, n, 2)
        The result of `find_disks` or of a `CorrelationUDF`, lazy or computed, or positions (y, x)
        in pixels, NaN where there is no disk. Axes of the scan are taken from a result.
    guess : array-like of real numbers, shape (3, 2), optional
        Lattice to begin with, as in `FitLatticeUDF`. By default, `guess_lattice` makes it from
        frames all over the scan, when the result is computed: it needs the disks of all chunks.
    weights : str or array of real numbers, shape (*nav, n), optional
        Weights of the disks, or the name of the result that has them, such as "intensity". By
        default, all disks have the same weight.
    roi
        As in `udfdask.run_udf`.
    **options
        `max_distance`, as in `FitLatticeUDF`, and options of `udfdask.run_udf`.

    Returns
    -------
    Result
        `origin`, `a`, `b`, `residual`, `num_used` and `indices`, as in `FitLatticeUDF`.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If an argument has a wrong type, shape or value; when it is computed, also if the disks do
        not show a lattice and there is no guess.
    UDFError
        As in `udfdask.run_udf`.

    Examples
    --------
    >>> import numpy as np
    >>> from udfdask.analyses import fit_lattice
    >>> orders = np.array([(h, k) for h in range(-2, 3) for k in range(-2, 3)])
    >>> disks = (30, 32) + orders @ np.array([(12.0, 1.0), (-1.0, 12.4)])
    >>> noise = np.random.default_rng(0).normal(0, 0.05, (4, 6, 25, 2))
    >>> fit = fit_lattice(disks + noise).compute()
    >>> fit["a"].shape, fit["a"].mean(axis=(0, 1)).round(2)
    ((4, 6, 2), array([12.,  1.]))
    """
    frames, axes = take_array(disks, POSITIONS, "find_disks")
    if frames.ndim < 2 or frames.shape[-1] != 2:
        raise ArgumentValueError(
            f"positions must have the shape (*nav, disks, 2), not {frames.shape}: pass the result "
            "of find_disks"
        )
    given, frames, strengths = frames, as_dask(frames), None
    if weights is not None:
        named = isinstance(weights, str)
        strengths = take_array(disks, (weights,), "find_disks")[0] if named else as_lazy(weights)
        frames = _with_column(frames, strengths)
    elif isinstance(disks, Mapping) and set(STRENGTHS) & set(disks):
        strengths = take_array(disks, STRENGTHS, "find_disks")[0]
    if guess is None:
        frames, guess = _with_guess(frames, strengths), FIRST_ROWS
    options |= {"of": given, "scan": axes and axes[:-2], "guess": guess, "roi": roi}
    return run_over(fit_lattice, FitLatticeUDF, frames, **options)


def _with_column(frames: da.Array, weights: da.Array) -> da.Array:
    """Return positions with their weights as a third column."""
    if weights.shape != frames.shape[:-1]:
        raise ArgumentValueError(
            f"weights must have the shape {frames.shape[:-1]}, one for each disk, not "
            f"{weights.shape}"
        )
    joined: da.Array = da.concatenate([frames[..., :2], as_dask(weights)[..., None]], axis=-1)
    return joined


def _with_guess(frames: da.Array, strengths: da.Array | None) -> da.Array:
    """Return frames that begin with the lattice of frames all over the scan.

    A parameter that is a result of the data would be computed in a pass before. Positions are
    small: they can wait in memory for the guess, which is a part of each frame.
    """
    *nav, _, columns = frames.shape
    step = math.ceil((math.prod(nav) / MOST_FRAMES) ** (1 / max(1, len(nav))))
    known = frames if strengths is None else _with_column(frames, strengths)
    some = known[(slice(None, None, max(1, step)),) * len(nav)].rechunk(-1)
    one: Any = {"chunks": (3, 2), "dtype": np.float64, "meta": np.empty((0, 0))}
    guess = da.map_blocks(guess_lattice, some, drop_axis=list(range(len(nav))), **one)
    if columns == 3:
        guess = da.concatenate([guess, da.ones((3, 1))], axis=1)
    chunks = (*frames.chunks[:-2], (3,), (columns,))
    rows = da.broadcast_to(guess.rechunk(-1), (*nav, 3, columns), chunks=chunks)
    joined: da.Array = da.concatenate([rows, frames], axis=-2)
    return joined
