"""Describe results before they have values, and convert their values to the panels of a figure."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from udfdask.geometry.axes import Axis
from udfdask.geometry.labels import Place

Style = Literal["scan", "pattern", "signed", "phase", "vector", "lines"]
Array = np.ndarray[Any, Any]

Described = Any
"""The metadata of the results of one UDF, `ResultInfo`."""

_NUMBERS = "biufc"
_MOST_OF_ONE_BUFFER = 4
_VECTOR = ("y", "x")  # labels of the components of vectors
_LOOKS: Mapping[tuple[str, str | None], Mapping[str, Any]] = {
    ("phase", "rad"): {"style": "scan"},  # its zero means nothing
    ("rotation", "rad"): {"style": "signed"},
    **{(name, ""): {"style": "signed", "percent": True} for name in ("exx", "eyy", "exy")},
}
"""How results of these names and units are drawn, whatever their values: fields of a `Panel`."""


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
    percent: bool = False
    """Write the values in percent: 0.01 as 1."""
    outlines: Mapping[str, Array] = field(default_factory=dict)
    """Masks that are drawn over an image, shape (y, x), or over a line, shape (n,), by their
    names."""
    vmin: float | None = None
    """Lowest value of the color scale, or of a curve; by default as the values need it."""
    vmax: float | None = None
    """Highest value of the color scale, or of a curve; the brightest length of vectors."""
    cmap: Any = None
    """Colormap of matplotlib, or its name; by default that of the style."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """Name, shape and axes of one result."""

    title: str
    """Title of the result in a picture."""
    kind: str
    """Shaped like the scan (`nav`), like a frame (`sig`), or neither (`single`)."""
    shape: tuple[int, ...]
    """Shape of the full result."""
    dtype: np.dtype[Any]
    """Dtype of the result."""
    axes: tuple[Axis, ...]
    """One axis per dimension."""
    n_leading: int
    """Number of dimensions that belong to the scan or the frame; the others are extra."""
    unit: str | None = None
    """Unit of the values; None if it is not known."""
    look: Mapping[str, Any] = field(default_factory=dict)
    """How it is drawn, whatever its values."""

    @property
    def obstacle(self) -> str:
        """The reason why the result cannot be drawn; empty if it can."""
        if self.dtype.kind not in _NUMBERS:
            return f"it contains {self.dtype} values, not numbers"
        return "" if math.prod(self.shape) > 1 else "it is empty or one number"


def label_result(described: Described, name: str, place: Place) -> Labels:
    """Return the labels of a result, or of its part with a label."""
    nav, sig = tuple(described.nav_shape), tuple(described.sig_shape)
    axes = described.calibration.axes
    leading = {"nav": (nav, axes[: len(nav)]), "sig": (sig, axes[len(nav) :])}
    spec = described.buffers[place.result]
    shape, own = leading.get(spec.kind, ((), ()))
    part = place.of(np.broadcast_to(np.empty((), spec.dtype), (*shape, *spec.extra_shape)))
    # positions in an extra dimension are indices, not pixels
    extra = (a if a.unit or a.labels else replace(a, unit="index") for a in place.axes)
    unit = described.units[place.result]
    return Labels(
        title=name,
        kind=str(spec.kind),
        shape=part.shape,
        dtype=part.dtype,
        axes=(*own, *extra),
        n_leading=len(shape),
        unit=unit,
        look=_LOOKS.get((name, unit), {}),
    )


def missing_as_nan(values: Array, valid: Array) -> Array:
    """Return an array with NaN at invalid positions, if it contains numbers."""
    if valid.all() or values.dtype.kind not in _NUMBERS:
        return values
    return np.where(valid, values.astype(np.result_type(values.dtype, np.float32)), np.nan)


def panels_of(labels: Labels, values: Array, *, log: bool | None = None) -> tuple[Panel, ...]:
    """Return the panels of a result, none if it cannot be drawn; invalid positions are NaN.

    If `log` is None, patterns are drawn on a logarithmic scale, and so are curves and images over
    axes of their own, such as a radius, if their values span more than two decades.
    """
    labels = replace(labels, shape=values.shape, dtype=values.dtype)
    if labels.obstacle:
        return ()
    if _is_profile(labels):
        n = labels.n_leading
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # where no curve has a value
            mean: Array = np.nanmean(values, axis=tuple(range(n)), dtype="float64")
        return (
            Panel(
                title=f"{labels.title}, mean over the scan",
                values=mean,
                axes=labels.axes[n:],
                log=_spans_decades(mean) if log is None else log,
                label=labels.unit or "",
            ),
        )
    if _is_lines(labels):
        lines = Panel(title=labels.title, values=values, axes=labels.axes, style="lines")
        return (replace(lines, log=bool(log), label=labels.unit or ""),)
    return tuple(itertools.islice(_planes(labels, values, log), _MOST_OF_ONE_BUFFER))


def _is_lines(labels: Labels) -> bool:
    """Return whether a result has a few labeled curves over an axis with a unit."""
    return (
        labels.kind == "single"
        and len(labels.axes) == 2
        and labels.axes[1].labels is not None
        and labels.axes[0].unit not in (None, "index")
        and labels.dtype.kind in "biuf"
    )


def _is_profile(labels: Labels) -> bool:
    """Return whether each scan position has a curve or an image over axes with a unit."""
    extra = labels.axes[labels.n_leading :]
    return (
        labels.kind == "nav"
        and len(extra) in (1, 2)
        and labels.dtype.kind != "c"
        and labels.shape[-1] > _MOST_OF_ONE_BUFFER
        and _are_measured(extra)
    )


def _are_measured(axes: Sequence[Axis]) -> bool:
    """Return whether axes have positions of different units, such as a radius and an angle."""
    plain = any(axis.labels or axis.unit == "index" for axis in axes)
    return not plain and len({axis.unit for axis in axes}) == len(axes)


def _spans_decades(values: Array) -> bool:
    """Return whether a logarithmic scale shows more: positive values over two decades."""
    finite = values[np.isfinite(values)]
    return bool(finite.size and 0 < 100 * finite.min() < finite.max())


def _planes(labels: Labels, values: Array, log: bool | None) -> Iterator[Panel]:
    """Yield the panels of the images or lines of a result.

    They are over the last two dimensions of the dataset, if the result has any, at the middle of
    the others and at each position of extra dimensions. Complex values have two panels.
    """
    n, shape = labels.n_leading, values.shape
    long = [dim for dim in range(n or values.ndim) if shape[dim] > 1]
    drawn = (long or [dim for dim in range(values.ndim) if shape[dim] > 1])[-2:]
    is_vector = (
        (labels.kind, len(drawn), values.ndim) == ("nav", 2, n + 1)
        and labels.axes[-1].labels == _VECTOR
        and values.dtype.kind != "c"
    )
    drawn = [*drawn, n] if is_vector else drawn
    others = [dim for dim in range(values.ndim) if dim not in drawn]
    positions = [[shape[dim] // 2] if dim < n else range(shape[dim]) for dim in others]
    for chosen in itertools.product(*positions):
        places = dict(zip(others, chosen, strict=True))
        texts = [_place_text(labels.axes[dim], position) for dim, position in places.items()]
        panel = Panel(
            title=labels.title + (f" [{', '.join(texts)}]" if texts else ""),
            values=values[tuple(places.get(dim, slice(None)) for dim in range(values.ndim))],
            axes=tuple(labels.axes[dim] for dim in drawn),
            label=labels.unit or "",
            style="vector" if is_vector else "scan",
        )
        yield from (panel,) if is_vector else _colored(panel, labels, log)


def _colored(panel: Panel, labels: Labels, log: bool | None) -> tuple[Panel, ...]:
    """Return a panel with the style of its values, or two panels for complex values."""
    values, kind = panel.values, labels.kind
    if labels.unit == "rad" and values.dtype.kind == "f" and _fill_circle(values):
        return (replace(panel, style="phase"),)
    if labels.look:
        return (replace(panel, log=bool(log), **labels.look),)
    is_pattern = kind == "sig"
    signed = values.dtype.kind in "if" and _has_both_signs(values)
    if log is None:
        log = is_pattern and values.ndim == 2 and not signed and values.dtype.kind != "b"
        if kind == "single" and _are_measured(panel.axes):
            log = values.dtype.kind in "iuf" and _spans_decades(values)
    style: Style = "pattern" if is_pattern else "signed" if signed and not log else "scan"
    panel = replace(panel, style=style, log=log)
    if values.dtype.kind != "c":
        return (panel,)
    angle = np.where(np.isnan(values), np.nan, np.angle(values))
    phase = replace(panel, values=angle, style="phase", log=False, label="radians")
    return (
        replace(panel, title=f"{panel.title}, amplitude", values=np.abs(values)),
        replace(phase, title=f"{panel.title}, phase"),
    )


def _has_both_signs(values: Array) -> bool:
    """Return whether values are spread around zero; a few outliers on one side do not count."""
    finite = values[np.isfinite(values)]
    if finite.size == 0:
        return False
    low, high = np.quantile(finite, (0.05, 0.95))
    return bool(low < 0 < high and min(-low, high) > 0.05 * max(-low, high))


def _fill_circle(values: Array) -> bool:
    """Return whether angles in radians fill the circle, from -pi to pi."""
    finite = values[np.isfinite(values)]
    return bool(finite.size and -3.2 < finite.min() < -3.0 and 3.0 < finite.max() < 3.2)


def _place_text(axis: Axis, position: int) -> str:
    """Return a position on an axis as text: its label, its value with the unit, or its index."""
    if axis.labels is not None:
        return axis.labels[position]
    if axis.unit in (None, "index"):
        return str(position)
    return f"{axis.positions(position + 1)[position]:g} {axis.unit}"
