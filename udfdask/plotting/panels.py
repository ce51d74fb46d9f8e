"""What a figure shows: its panels, and how results become panels."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from udfdask.axes import Axis

_MOST_OF_ONE_BUFFER = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One image or one line of a figure."""

    title: str
    """What is shown, above the panel."""
    values: np.ndarray[Any, Any]
    """An image, shape (y, x), or a line, shape (n,); of complex values the amplitude is drawn."""
    axes: tuple[Axis, ...]
    """One axis per dimension of `values`."""
    style: Literal["scan", "pattern", "signed"] = "scan"
    """Colours: of a scan image, of a diffraction pattern, or of values around zero."""
    log: bool = False
    """Draw the values on a logarithmic scale."""
    label: str = ""
    """What the values are, with their unit."""


def result_panels(
    results: Mapping[str, Any], axes: Sequence[Axis], sig_dims: int
) -> tuple[Panel, ...]:
    """Choose what to draw of computed results.

    Navigation results become scan images, or a line where there is one navigation dimension;
    signal results become patterns on a logarithmic scale, or spectra. Of extra dimensions the first
    few positions are drawn, of further dimensions the middle. Single numbers and results that are
    no numbers are left out.

    Parameters
    ----------
    results : mapping of str to Result
        Computed results, under the names to be shown.
    axes : sequence of Axis
        One axis per dimension of the data, ``(*nav, *sig)``.
    sig_dims : int
        How many of them are signal dimensions.

    Returns
    -------
    tuple of Panel
        The panels, in the order of the results.

    Examples
    --------
    >>> import dask.array as da
    >>> from udfdask import Axis, run_udf
    >>> from udfdask.plotting import result_panels
    >>> from udfdask.udfs import SumSigUDF
    >>> x = da.ones((5, 6, 8, 8), chunks=(2, 6, 8, 8))
    >>> axes = [Axis(name=name) for name in ("y", "x", "ky", "kx")]
    >>> done = run_udf(x, SumSigUDF(), sig_dims=2).compute()
    >>> [(panel.title, panel.values.shape) for panel in result_panels({"sumsig": done}, axes, 2)]
    [('sumsig: intensity', (5, 6))]
    """
    nav = len(axes) - sig_dims
    by_kind = {"nav": tuple(axes[:nav]), "sig": tuple(axes[nav:])}
    return tuple(
        panel
        for udf, result in results.items()
        for name, array in result.items()
        for panel in _buffer_panels(
            f"{udf}: {name}",
            _with_nan(np.asarray(array), result.valid_mask[name]),
            by_kind.get(str(result.buffers[name].kind), ()),
            is_signal=str(result.buffers[name].kind) == "sig",
        )
    )


def _with_nan(values: np.ndarray[Any, Any], valid: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Take an array and where it is valid; return it with NaN elsewhere, if it can hold any."""
    if valid.all() or values.dtype.kind not in "biufc":
        return values
    return np.where(valid, values.astype(np.result_type(values.dtype, np.float32)), np.nan)


def _buffer_panels(
    title: str, values: np.ndarray[Any, Any], axes: tuple[Axis, ...], *, is_signal: bool
) -> Iterator[Panel]:
    """Take one result and the axes of its leading dimensions; yield its panels."""
    if values.dtype.kind not in "biufc" or values.size < 2:
        return
    all_axes = axes + tuple(
        Axis(name=f"dim_{i}", unit="index") for i in range(values.ndim - len(axes))
    )
    # The image is made of the dataset's own dimensions where there are any.
    drawn = _drawn_dims(values.shape, len(axes) or values.ndim)
    others = [dim for dim in range(values.ndim) if dim not in drawn]
    positions = [
        [values.shape[dim] // 2] if dim < len(axes) else list(range(values.shape[dim]))
        for dim in others
    ]
    for chosen in itertools.islice(itertools.product(*positions), _MOST_OF_ONE_BUFFER):
        index: list[Any] = [slice(None)] * values.ndim
        for dim, position in zip(others, chosen, strict=True):
            index[dim] = position
        plane = values[tuple(index)]
        where = f" [{', '.join(map(str, chosen))}]" if chosen else ""
        yield Panel(
            title=title + where,
            values=plane,
            axes=tuple(all_axes[dim] for dim in drawn),
            style="pattern" if is_signal else "signed" if _has_both_signs(plane) else "scan",
            log=is_signal and plane.ndim == 2 and not _has_both_signs(plane),
        )


def _drawn_dims(shape: tuple[int, ...], leading: int) -> tuple[int, ...]:
    """Take a shape and how many dimensions to choose from; return one or two dimensions to draw."""
    dims = [dim for dim in range(leading) if shape[dim] > 1] or list(range(len(shape)))
    return tuple(dims[-2:])


def _has_both_signs(values: np.ndarray[Any, Any]) -> bool:
    """Whether values are spread around zero, rather than the negative ones being a few strays."""
    if values.dtype.kind not in "if":
        return False
    finite = values[np.isfinite(values)]
    if finite.size == 0:
        return False
    low, high = np.quantile(finite, (0.05, 0.95))
    return bool(low < 0 < high and min(-low, high) > 0.05 * max(-low, high))
