"""Convert results to the panels of a figure."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from udfdask.geometry.axes import Axis
from udfdask.plotting.labels import Labels, place_text

Style = Literal["scan", "pattern", "signed", "phase", "vector", "lines"]
Array = np.ndarray[Any, Any]

_MOST_OF_ONE_BUFFER = 4
_MOST_LINES = 6
_VECTOR = ("y", "x")  # labels of the components of vectors
_ALIKE = 10.0  # if the mean vector exceeds this multiple of the spread, draw each component
_STEEP = 10.0  # if the maximum exceeds this multiple of the median, draw curves on a log scale


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One picture of a figure: an image, also of vectors, a line, or several lines.

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
    values: Array
    """An image, shape (y, x), or a line, shape (n,); complex values are drawn as amplitudes.
    For style `lines` shape (n, lines), for `vector` shape (y, x, 2) with components (y, x)."""
    axes: tuple[Axis, ...]
    """One axis per dimension of `values`."""
    style: Style = "scan"
    """Colors for a scan image, a diffraction pattern, values around zero, angles in radians, or
    vectors; or several lines."""
    log: bool = False
    """Draw the values on a logarithmic scale."""
    label: str = ""
    """Name of the values, with their unit."""
    outlines: Mapping[str, Array] = field(default_factory=dict)
    """Masks that are drawn over an image, shape (y, x), or over a line, shape (n,), by their
    names."""
    vmin: float | None = None
    """Lowest value of the color scale, or of a curve; by default as the values need it."""
    vmax: float | None = None
    """Highest value of the color scale, or of a curve; the brightest length of vectors."""
    cmap: Any = None
    """Colormap of matplotlib, or its name; by default that of the style."""


def panels_of(labels: Labels, values: Array, *, log: bool | None = None) -> tuple[Panel, ...]:
    """Return the panels of a result, none if it cannot be drawn; invalid positions are NaN.

    If `log` is None, patterns and steep profiles are drawn on a logarithmic scale.
    """
    if replace(labels, shape=values.shape, dtype=values.dtype).obstacle:
        return ()
    if _is_profile(labels, values):
        return (_mean_curve(labels, values, log),)
    if _are_vectors(labels, values):
        return (_vectors(labels, values),)
    planes = itertools.islice(_planes(labels, values), _MOST_OF_ONE_BUFFER)
    return tuple(panel for plane in planes for panel in _drawn(labels, *plane, log))


def _is_profile(labels: Labels, values: Array) -> bool:
    """Return whether each position of an image has a curve: values over positions along an axis."""
    n = labels.n_leading
    if labels.kind != "nav" or values.ndim != n + 1 or values.dtype.kind == "c":
        return False
    last = labels.axes[-1]
    is_curve = values.shape[-1] > _MOST_OF_ONE_BUFFER and not last.labels and last.unit != "index"
    return is_curve and len(_long_dims(values.shape[:n])) != 1


def _mean_curve(labels: Labels, values: Array, log: bool | None) -> Panel:
    """Return the mean curve over the scan.

    If `log` is None, it is logarithmic if most values would be near zero on a linear scale.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # positions where no curve has a value
        mean = np.nanmean(values.reshape(-1, values.shape[-1]).astype(np.float64), axis=0)
    if log is None:
        shown = mean[np.isfinite(mean)]
        log = bool(shown.size and shown.min() >= 0 and shown.max() > _STEEP * np.median(shown))
    title = f"{labels.title}, mean over the scan"
    axes, unit = labels.axes[-1:], labels.unit or ""
    return Panel(title=title, values=mean, axes=axes, style="lines", log=log, label=unit)


def _are_vectors(labels: Labels, values: Array) -> bool:
    """Return whether each position of an image has a vector that differs from the others.

    Vectors that are nearly the same, such as positions on a detector, would have one color.
    """
    if labels.kind != "nav" or values.dtype.kind == "c" or labels.axes[-1].labels != _VECTOR:
        return False
    if values.ndim != labels.n_leading + 1 or len(_long_dims(values.shape[:-1])) < 2:
        return False
    vectors = values[np.isfinite(values).all(axis=-1)].astype(np.float64)
    return not len(vectors) or bool(
        np.linalg.norm(vectors.mean(axis=0)) <= _ALIKE * np.linalg.norm(vectors.std(axis=0))
    )


def _vectors(labels: Labels, values: Array) -> Panel:
    """Return an image of vectors over the last two scan axes, at the middle of the others."""
    *others, down, right = _long_dims(values.shape[:-1])
    places = {dim: values.shape[dim] // 2 for dim in range(labels.n_leading)}
    index = [slice(None) if d in (down, right) else at for d, at in places.items()]
    texts = [place_text(labels.axes[dim], places[dim]) for dim in others]
    return Panel(
        title=labels.title + (f" [{', '.join(texts)}]" if texts else ""),
        values=values[tuple(index)],
        axes=(labels.axes[down], labels.axes[right], labels.axes[-1]),
        style="vector",
        label=labels.unit or "",
    )


def _planes(labels: Labels, values: Array) -> Iterator[tuple[str, Array, tuple[Axis, ...], bool]]:
    """Yield title, values and axes of each image or line of a result, and if it is several lines.

    An image over dimensions of the dataset is drawn, if the result has any.
    """
    n, last = labels.n_leading, values.ndim - 1
    drawn = _long_dims(values.shape[: n or values.ndim]) or _long_dims(values.shape)
    # of a scan along a line, the extra dimension is drawn too
    has_extra = labels.kind == "nav" and last == n and values.shape[last] > 1
    along_line = has_extra and len(drawn) == 1 and drawn != [last] and values.dtype.kind != "c"
    drawn = [*drawn, last] if along_line else drawn[-2:]
    others = [dim for dim in range(values.ndim) if dim not in drawn]
    positions = [
        [values.shape[dim] // 2] if dim < n else list(range(values.shape[dim])) for dim in others
    ]
    axes = tuple(labels.axes[dim] for dim in drawn)
    for chosen in itertools.product(*positions):
        places = dict(zip(others, chosen, strict=True))
        plane = values[tuple(places.get(dim, slice(None)) for dim in range(values.ndim))]
        texts = [place_text(labels.axes[dim], position) for dim, position in places.items()]
        title = labels.title + (f" [{', '.join(texts)}]" if texts else "")
        yield title, plane, axes, along_line and values.shape[last] <= _MOST_LINES


def _drawn(
    labels: Labels,
    title: str,
    plane: Array,
    axes: tuple[Axis, ...],
    is_lines: bool,
    log: bool | None,
) -> tuple[Panel, ...]:
    """Return the panel of an image or a line of a result, or two panels for complex values."""
    is_pattern = labels.kind == "sig"
    panel = Panel(
        title=title,
        values=plane,
        axes=axes,
        style="lines" if is_lines else "pattern" if is_pattern else "scan",
        log=bool(log) if log is not None else is_pattern and plane.ndim == 2,
        label=labels.unit or "",
    )
    if plane.dtype.kind == "c":
        amplitude = replace(panel, title=f"{title}, amplitude", values=np.abs(plane))
        angle = np.where(np.isnan(plane), np.nan, np.angle(plane))
        phase = replace(panel, title=f"{title}, phase", values=angle, style="phase", log=False)
        return amplitude, replace(phase, label="radians")
    signed = _has_both_signs(plane)
    if log is None and (signed or plane.dtype.kind == "b"):
        panel = replace(panel, log=False)
    if signed and panel.style == "scan" and not panel.log:
        panel = replace(panel, style="signed")
    return (panel,)


def _long_dims(shape: tuple[int, ...]) -> list[int]:
    """Return the dimensions with more than one position."""
    return [dim for dim, size in enumerate(shape) if size > 1]


def _has_both_signs(values: Array) -> bool:
    """Return whether values are spread around zero; a few outliers on one side do not count."""
    if values.dtype.kind not in "if":
        return False
    finite = values[np.isfinite(values)]
    if finite.size == 0:
        return False
    low, high = np.quantile(finite, (0.05, 0.95))
    return bool(low < 0 < high and min(-low, high) > 0.05 * max(-low, high))
