"""Convert results to the panels of a figure."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from udfdask.geometry.axes import Axis
from udfdask.plotting.labels import Labels, place_text

Style = Literal["scan", "pattern", "signed", "phase", "vector", "lines", "profile"]

VECTOR = ("y", "x")
"""Labels of the components of vectors."""

_MOST_OF_ONE_BUFFER = 4
_MOST_LINES = 6
_STEEP = 10.0  # if the maximum exceeds this multiple of the median, draw curves on a log scale
_ALIKE = 10.0  # if the mean vector exceeds this multiple of the spread, draw each component


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One picture of a figure: an image, a line, several lines, or an image of vectors.

    Examples
    --------
    >>> import numpy as np
    >>> from udfdask import Axis
    >>> from udfdask.plotting import Panel
    >>> axes = (Axis(name="y", unit="nm"), Axis(name="x", unit="nm"))
    >>> panel = Panel(title="bright field", values=np.eye(8), axes=axes, label="counts")
    >>> panel.style
    'scan'
    """

    title: str
    """Title above the panel."""
    values: np.ndarray[Any, Any]
    """An image, shape (y, x), or a line, shape (n,); complex values are drawn as amplitudes.
    For style `lines` shape (n, lines), for `vector` shape (y, x, 2) with components (y, x), for
    `profile` shape (n, 2) with the mean and the spread of a curve."""
    axes: tuple[Axis, ...]
    """One axis per dimension of `values`."""
    style: Style = "scan"
    """Colors for a scan image, a diffraction pattern, values around zero, angles in radians, or
    vectors; several lines; or a curve with its spread."""
    log: bool = False
    """Draw the values on a logarithmic scale."""
    label: str = ""
    """Name of the values, with their unit."""
    outlines: Mapping[str, np.ndarray[Any, Any]] = field(default_factory=dict)
    """Masks that are drawn over an image, shape (y, x), or over a line, shape (n,), by their
    names."""
    vmin: float | None = None
    """Lowest value of the color scale, or of a curve; by default as the values need it."""
    vmax: float | None = None
    """Highest value of the color scale, or of a curve; the brightest length of vectors."""
    cmap: Any = None
    """Colormap of matplotlib, or its name; by default that of the style."""
    norm: Any = None
    """Norm of matplotlib for the colors, instead of `log`, `vmin` and `vmax`."""


def panels_of(
    labels: Labels, values: np.ndarray[Any, Any], *, log: bool | None = None
) -> tuple[Panel, ...]:
    """Return the panels of a result, none if it cannot be drawn; invalid positions are NaN.

    If `log` is None, patterns and steep profiles are drawn on a logarithmic scale.
    """
    if replace(labels, shape=values.shape, dtype=values.dtype).obstacle:
        return ()
    is_complex = values.dtype.kind == "c"
    if not is_complex and is_profile(labels, values):
        panels = (_curve(labels, values, log=log), _rings(labels, values, log=log))
        return tuple(_with_unit(panel, labels) for panel in panels if panel is not None)
    # several lines, or the components of vectors, share one panel
    together = None if is_complex else _together(labels, values, log=bool(log))
    if together is not None:
        return (_with_unit(together, labels),)
    chosen = itertools.islice(_planes(labels, values), _MOST_OF_ONE_BUFFER)
    return tuple(
        _with_unit(panel, labels)
        for title, plane, axes in chosen
        for panel in _drawn(labels, title, plane, axes, log)
    )


def is_profile(labels: Labels, values: np.ndarray[Any, Any]) -> bool:
    """Return whether each scan position has a curve: values over positions along an axis."""
    n = labels.n_leading
    if labels.kind != "nav" or values.ndim != n + 1 or values.shape[-1] <= _MOST_OF_ONE_BUFFER:
        return False
    return labels.axes[-1].labels is None and labels.axes[-1].unit != "index"


def _curve(labels: Labels, values: np.ndarray[Any, Any], *, log: bool | None) -> Panel:
    """Return the mean curve over the scan with its spread, or the only curve.

    If `log` is None, it is logarithmic if most values would be near zero on a linear scale.
    """
    rows = values.reshape(-1, values.shape[-1]).astype(np.float64)
    if len(rows) == 1:  # a scan of one position has no spread
        log = _is_steep(rows[0]) if log is None else log
        return Panel(title=labels.title, values=rows[0], axes=labels.axes[-1:], log=log)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # positions where no curve has a value
        mean, spread = np.nanmean(rows, axis=0), np.nanstd(rows, axis=0)
    about = Axis(name="of the scan", labels=("mean", "spread"))
    return Panel(
        title=f"{labels.title}, mean over the scan",
        values=np.stack([mean, spread], axis=1),
        axes=(labels.axes[-1], about),
        style="profile",
        log=_is_steep(mean) if log is None else log,
    )


def _rings(labels: Labels, values: np.ndarray[Any, Any], *, log: bool | None) -> Panel | None:
    """Return the curves along the first scan axis with several positions, as an image.

    If `log` is None, it is logarithmic if most values would be black on a linear scale.
    """
    n = labels.n_leading
    along = next((dim for dim in range(n) if values.shape[dim] > 1), None)
    if along is None:
        return None
    others = tuple(dim for dim in range(n) if dim != along)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        image = np.nanmean(values.astype(np.float64), axis=others)
    averaged = ", ".join(labels.axes[dim].name for dim in others if values.shape[dim] > 1)
    title = f"{labels.title}, mean over {averaged}" if averaged else labels.title
    log = _is_steep(image) if log is None else log
    return Panel(title=title, values=image, axes=(labels.axes[along], labels.axes[-1]), log=log)


def _is_steep(values: np.ndarray[Any, Any]) -> bool:
    """Return whether a linear scale would hide most values, none of which is negative."""
    shown = values[np.isfinite(values)]
    return bool(shown.size and shown.min() >= 0 and shown.max() > _STEEP * np.median(shown))


def _with_unit(panel: Panel, labels: Labels) -> Panel:
    """Return a panel that tells the unit of its values, if it is known."""
    return panel if panel.label or labels.unit is None else replace(panel, label=labels.unit)


def _together(labels: Labels, values: np.ndarray[Any, Any], *, log: bool) -> Panel | None:
    """Return one panel for a result with a single extra dimension, or None if not possible."""
    n = labels.n_leading
    if labels.kind != "nav" or values.ndim != n + 1:
        return None
    drawn = _drawn_dims(values.shape, n) if max(values.shape[:n], default=0) > 1 else ()
    rest = [(dim, values.shape[dim] // 2) for dim in range(n) if dim not in drawn]
    plane, last = _at(values, rest), labels.axes[-1]
    axes = (*(labels.axes[dim] for dim in drawn), last)
    title = labels.title + _where(labels, rest)
    if len(drawn) == 2 and last.labels == VECTOR and not _are_positions(plane):
        return Panel(title=title, values=plane, axes=axes, style="vector")
    if len(drawn) == 1 and values.shape[-1] > 1:
        style: Style = "signed" if _has_both_signs(plane) else "scan"
        if values.shape[-1] <= _MOST_LINES:
            style = "lines"
        return Panel(title=title, values=plane, axes=axes, style=style, log=log)
    return None


def _at(values: np.ndarray[Any, Any], places: Iterable[tuple[int, int]]) -> np.ndarray[Any, Any]:
    """Return the part of an array at the given positions; `places` has (dimension, position)."""
    index: list[Any] = [slice(None)] * values.ndim
    for dim, position in places:
        index[dim] = position
    part: np.ndarray[Any, Any] = values[tuple(index)]
    return part


def _are_positions(vectors: np.ndarray[Any, Any]) -> bool:
    """Return whether all vectors are nearly equal, such as positions on a detector."""
    y, x = (part[np.isfinite(part)] for part in (vectors[..., 0], vectors[..., 1]))
    if y.size == 0 or x.size == 0:
        return False
    spread = np.hypot(y.std(dtype=np.float64), x.std(dtype=np.float64))
    mean = np.hypot(y.mean(dtype=np.float64), x.mean(dtype=np.float64))
    return bool(mean > _ALIKE * spread)


def _planes(
    labels: Labels, values: np.ndarray[Any, Any]
) -> Iterator[tuple[str, np.ndarray[Any, Any], tuple[Axis, ...]]]:
    """Yield title, values and axes of each image or line of a result."""
    n = labels.n_leading
    # Draw the image over dimensions of the dataset, if the result has any.
    drawn = _drawn_dims(values.shape, n or values.ndim)
    others = [dim for dim in range(values.ndim) if dim not in drawn]
    positions = [
        [values.shape[dim] // 2] if dim < n else list(range(values.shape[dim])) for dim in others
    ]
    axes = tuple(labels.axes[dim] for dim in drawn)
    for chosen in itertools.product(*positions):
        places = list(zip(others, chosen, strict=True))
        yield labels.title + _where(labels, places), _at(values, places), axes


def _drawn(
    labels: Labels,
    title: str,
    plane: np.ndarray[Any, Any],
    axes: tuple[Axis, ...],
    log: bool | None,
) -> tuple[Panel, ...]:
    """Return the panel of an image or a line of a result, or two panels for complex values."""
    is_pattern = labels.kind == "sig"
    style: Style = "pattern" if is_pattern else "scan"
    if plane.dtype.kind == "c":
        by_itself = bool(log) if log is not None else is_pattern and plane.ndim == 2
        amplitude = Panel(
            title=f"{title}, amplitude", values=np.abs(plane), axes=axes, style=style, log=by_itself
        )
        phase = Panel(
            title=f"{title}, phase",
            values=np.where(np.isnan(plane), np.nan, np.angle(plane)),
            axes=axes,
            style="phase",
            label="radians",
        )
        return amplitude, phase
    signed = _has_both_signs(plane)
    if log is None:
        log = is_pattern and plane.ndim == 2 and not signed and plane.dtype.kind != "b"
    if signed and not log and not is_pattern:
        style = "signed"
    return (Panel(title=title, values=plane, axes=axes, style=style, log=log),)


def _where(labels: Labels, chosen: Sequence[tuple[int, int]]) -> str:
    """Return positions in some dimensions as text."""
    places = [place_text(labels.axes[dim], position) for dim, position in chosen]
    return f" [{', '.join(places)}]" if places else ""


def _drawn_dims(shape: tuple[int, ...], leading: int) -> tuple[int, ...]:
    """Return one or two dimensions to draw, chosen from the first `leading` ones if possible."""
    dims = [dim for dim in range(leading) if shape[dim] > 1] or [
        dim for dim in range(len(shape)) if shape[dim] > 1
    ]
    return tuple(dims[-2:])


def _has_both_signs(values: np.ndarray[Any, Any]) -> bool:
    """Return whether values are spread around zero; a few outliers on one side do not count."""
    if values.dtype.kind not in "if":
        return False
    finite = values[np.isfinite(values)]
    if finite.size == 0:
        return False
    low, high = np.quantile(finite, (0.05, 0.95))
    return bool(low < 0 < high and min(-low, high) > 0.05 * max(-low, high))
