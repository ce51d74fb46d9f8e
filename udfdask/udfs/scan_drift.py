"""Measure the shifts between neighboring frames, and add them up."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from udfdask.base.types import AnyArray
from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.geometry.axes import Axis
from udfdask.geometry.halo import BOUNDARIES
from udfdask.masks import checks
from udfdask.udf.buffers import BufferSpec
from udfdask.udf.promises import Promises
from udfdask.udfs.shared.built_in import BuiltInUDF, check_choice


class ScanDriftUDF(BuiltInUDF):
    """Measure how far each frame is shifted, compared to the frame before it or to a reference.

    The shift is where the cross correlation of the two frames is highest. `integrate_drift` makes
    from differences between neighbors the shift of each frame for ``descan=``.

    Parameters
    ----------
    reference : "previous" or array of real numbers, shape (*sig,)
        What each frame is compared with: its predecessor along each axis, or a frame, also lazy,
        such as ``data[0]`` or a mean. Then errors do not add up from frame to frame.
    upsample : int
        Number of points for each pixel at which the correlation is computed around its maximum.
        With 1, shifts are whole pixels.
    normalization : {"phase"} or None
        With "phase", all spatial frequencies count the same: better for sharp features on a strong
        background that does not move. None is better for most frames.
    max_shift : float, optional
        Largest shift, in pixels, that is looked for: for periodic patterns less than half a period.
    boundary : {"mask", "nearest", "reflect", "periodic"}
        What stands for frames beyond the ends of the scan; with "mask", nothing.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If a parameter is wrong; in `run_udf`, if the data are not real numbers, there is no scan,
        or the signal has more than two axes.

    See Also
    --------
    integrate_drift : Shifts of all frames relative to one of them.

    Notes
    -----
    Buffers of kind nav, float32:

    - `shifts`, extra shape (nav dims, sig dims), in pixels: ``shifts[p, a]`` is how far the frame
      at p is moved, compared to the frame at p - 1 along navigation axis a, as ``descan=`` takes
      it. It points from the old place of a feature to the new one, opposite to
      `skimage.registration.phase_cross_correlation`.
    - `correlation`, extra shape (nav dims,): the height of the maximum, 1 for frames that are equal
      up to a shift, near 0 for frames that have nothing in common.

    With a reference, both have no axis for the nav dims.

    Frames are blurred by one pixel, and multiplied by a window that is 0 at the edges (axes of less
    than 8 pixels have none). Both results are NaN where there is no predecessor, and if a frame
    contains NaN; the shift of a constant frame is NaN, its correlation 0. Frames count as periodic:
    shifts are between minus half and half the size of a frame.

    References
    ----------
    .. [1] M. Guizar-Sicairos, S. T. Thurman, J. R. Fienup, "Efficient subpixel image registration
       algorithms", Optics Letters 33, 156-158 (2008).

    Examples
    --------
    >>> import dask.array as da, numpy as np, udfdask as ud
    >>> from udfdask.udfs import ScanDriftUDF
    >>> frame = np.random.default_rng(0).random((16, 16))
    >>> frames = np.stack([np.roll(frame, n, axis=1) for n in (0, 1, 3)])
    >>> x = da.from_array(frames, chunks=(2, 16, 16))
    >>> res = ud.run_udf(x, ScanDriftUDF()).compute()
    >>> res["shifts"][:, 0].round(2) + 0.0
    array([[nan, nan],
           [ 0.,  1.],
           [ 0.,  2.]], dtype=float32)
    """

    promises = Promises(declares_once=True)
    default_plots: ClassVar[tuple[str, ...]] = ("correlation",)

    def __init__(
        self,
        *,
        reference: Any = "previous",
        upsample: int = 10,
        normalization: str | None = None,
        max_shift: float | None = None,
        boundary: str = "mask",
    ) -> None:
        check_choice("normalization", normalization, ("phase", None))
        if max_shift is not None:
            max_shift = checks.number("max_shift", max_shift)  # it can be given as text
            if max_shift < 1:
                raise ArgumentValueError(f"max_shift must be at least 1 pixel, not {max_shift!r}")
        checks.integer("upsample", upsample, least=1)
        check_choice("boundary", boundary, BOUNDARIES)
        if isinstance(reference, str) and reference != "previous":
            raise ArgumentValueError(f'reference must be "previous" or a frame, not {reference!r}')
        search = {"upsample": upsample, "normalization": normalization, "max_shift": max_shift}
        super().__init__(reference=reference, **search, boundary=boundary)
        self.boundary = boundary

    @property
    def _has_reference(self) -> bool:
        return not isinstance(self.params.reference, str)

    @property
    def halo(self) -> Any:
        """One frame before each position; also one after it, until the data are known."""
        if self._has_reference:
            return 0
        if "meta" not in vars(self):
            return 1
        return ((1, 0),) * len(self.meta.dataset_shape.nav)

    def get_result_buffers(self) -> Mapping[str, BufferSpec]:
        data, shape = self.meta.input_dtype, self.meta.dataset_shape
        nav, sig = tuple(shape.nav), tuple(shape.sig)
        if data.kind not in "biuf":
            raise ArgumentTypeError(
                f"ScanDriftUDF compares real numbers, not {data}: use dask.array.absolute(data)"
            )
        if not nav:
            raise ArgumentValueError("ScanDriftUDF compares frames, but there is no scan")
        if len(sig) not in (1, 2) or 0 in sig:
            raise ArgumentValueError(
                f"ScanDriftUDF works on images and spectra, not on a signal of shape {sig}: pass "
                "sig_dims=2 or sig_dims=1"
            )
        given = getattr(self.params.reference, "shape", ())
        if self._has_reference and tuple(given) != sig:
            raise ArgumentValueError(f"reference must have the shape of a frame, {sig}: {given}")
        along = () if self._has_reference else (len(nav),)
        shifts, heights = self.buffer("nav", (*along, len(sig))), self.buffer("nav", along)
        return {"shifts": shifts, "correlation": heights}

    def get_result_axes(self) -> Mapping[str, tuple[Axis, ...]]:
        axes, n = self.meta.axes, len(self.meta.dataset_shape.nav)
        along = Axis(name="along", labels=tuple(axis.name for axis in axes[:n]))
        component = Axis(name="component", labels=("y", "x")[2 - len(axes[n:]) :])
        if self._has_reference:
            return {"shifts": (component,)}
        return {"shifts": (along, component), "correlation": (along,)}

    def get_result_units(self) -> Mapping[str, str | None]:
        """Name the units: shifts are in pixels, as ``descan=`` takes them."""
        return {"shifts": "px", "correlation": ""}

    def get_shared_task_data(self) -> Mapping[str, Any]:
        """Return the shape of a frame, which shifts are looked for, and the reference."""
        from udfdask.kernels.cpu.phase_correlation import spectra_of

        sig = tuple(self.meta.dataset_shape.sig)
        shape = (1, *sig) if len(sig) == 1 else sig
        allowed = reference = None
        if self.params.max_shift is not None:
            y, x = (np.fft.fftfreq(n, 1 / n) for n in shape)
            allowed = np.hypot(y[:, np.newaxis], x) <= self.params.max_shift
        if self._has_reference:
            frame = np.asarray(self.params.reference).reshape(shape)
            reference = spectra_of(frame, self.params.normalization == "phase")
        return {"shape": shape, "allowed": allowed, "reference": reference}

    def process_partition(self, frames: Any) -> None:
        from udfdask.kernels.cpu.phase_correlation import find_shift, spectra_of

        task, p = self.task_data, self.params
        shifts, correlation = self.results.shifts, self.results.correlation
        shifts[...] = correlation[...] = np.nan
        kept: dict[tuple[int, ...], AnyArray] = {}

        def spectra_at(place: tuple[int, ...]) -> AnyArray:
            if place not in kept:
                frame = frames[place].reshape(task.shape)
                kept[place] = spectra_of(frame, p.normalization == "phase")
            return kept[place]

        first = [part.start for part in self.meta.core]
        for row in map(tuple, np.argwhere(self.meta.core_mask).tolist()):
            here = tuple(np.add(row, first).tolist())
            # later positions need nothing before this one, moved back along the first axis
            for place in [one for one in kept if one < (here[0] - 1, *here[1:])]:
                del kept[place]
            others: dict[tuple[int, ...], AnyArray] = {(): task.reference}
            if task.reference is None:
                before = [(*here[:k], n - 1, *here[k + 1 :]) for k, n in enumerate(here)]
                exist = self.meta.neighbor_mask
                others = {(k,): spectra_at(b) for k, b in enumerate(before) if exist[b]}
            for axis, other in others.items():
                pair = other, spectra_at(here)
                *shift, height = find_shift(*pair, task.shape, p.upsample, task.allowed)
                shifts[row + axis] = shift[-shifts.shape[-1] :]
                correlation[row + axis] = height


LEAST = 1e-9
"""Smallest weight, as a part of the largest, that counts."""


def integrate_drift(shifts: Any, *, weights: Any = None) -> AnyArray:
    """Add up the shifts between neighboring frames to the shift of each frame.

    Parameters
    ----------
    shifts : array-like of numbers, shape (*nav, nav dims, sig dims)
        Shift of each frame relative to its predecessor along each navigation axis, in pixels: the
        result `shifts` of a `ScanDriftUDF`. Shifts that contain NaN are not used. A lazy array is
        computed.
    weights : array-like of numbers, shape (*nav, nav dims), optional
        How reliable each shift is, such as the result `correlation` of a `ScanDriftUDF`: shifts
        with a weight of 0 or less, NaN, or less than 1e-9 of the largest are not used. By default,
        all count the same.

    Returns
    -------
    numpy.ndarray, shape (*nav, sig dims), float64
        Shift of each frame, in pixels, relative to the first frame, as ``descan=`` takes it. Frames
        that no chain of shifts connects with the first one are NaN. If it has no shift itself, they
        are relative to the first frame of the largest connected part.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If an argument does not hold real numbers or has a wrong shape, or weights are infinite.

    See Also
    --------
    ScanDriftUDF : Measures the shifts.

    Notes
    -----
    In a scan of two axes, many ways lead to each frame. The result minimizes the sum of the squared
    differences to all measured shifts. Errors add up over the scan: large drifts are less certain
    than those of a `CoMUDF`, which measures each frame for itself.

    Examples
    --------
    >>> import numpy as np
    >>> from udfdask.udfs import integrate_drift
    >>> shifts = np.array([[[np.nan, np.nan]], [[0.0, 1.0]], [[0.5, 2.0]]])
    >>> integrate_drift(shifts)
    array([[0. , 0. ],
           [0. , 1. ],
           [0.5, 3. ]])
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components
    from scipy.sparse.linalg import splu

    found = _numbers("shifts", shifts)
    *nav, dims, sig_dims = found.shape if found.ndim > 1 else (0, 0)
    if not nav or dims != len(nav):
        raise ArgumentValueError(
            f"shifts must have the shape (*nav, nav dims, sig dims), not {found.shape}: pass the "
            "result 'shifts' of a ScanDriftUDF"
        )
    usable = np.isfinite(found).all(axis=-1)
    strength = np.ones(usable.shape) if weights is None else _numbers("weights", weights)
    if strength.shape != usable.shape:
        raise ArgumentValueError(f"weights have the shape {strength.shape}, not {usable.shape}")
    if np.isinf(strength).any():
        raise ArgumentValueError("weights are infinite for some shifts: pass finite numbers")
    # the least squares cannot tell weights of more digits apart
    strength = strength / max(float(np.nanmax(strength, initial=0)), np.finfo(np.float64).tiny)
    n = math.prod(nav)
    drift = np.full((n, sig_dims), np.nan)
    # a shift links the frames `first` and `second`; those of one axis come after each other
    links = np.moveaxis(usable & (strength > LEAST), -1, 0) & (np.indices(nav) > 0)
    axis, second = np.nonzero(links.reshape(dims, n))
    first = second - np.array([math.prod(nav[k + 1 :]) for k in range(dims)])[axis]
    if not len(first):
        drift[:1] = 0
        return drift.reshape((*nav, sig_dims))
    graph = coo_array((np.ones(len(first)), (first, second)), shape=(n, n))
    _, part = connected_components(graph, directed=False)
    sizes = np.bincount(part)
    chosen = part[0] if sizes[part[0]] > 1 else int(sizes.argmax())
    inside = np.flatnonzero(part == chosen)
    kept = part[first] == chosen
    a, b = np.searchsorted(inside, first[kept]), np.searchsorted(inside, second[kept])
    size = strength.reshape(n, dims)[second, axis][kept]
    step = found.reshape(n, dims, sig_dims)[second, axis][kept] * size[:, np.newaxis]
    # normal equations of the least squares, without the first frame, which does not move
    entries = np.concatenate([size, size, -size, -size])
    places = np.concatenate([a, b, a, b]), np.concatenate([a, b, b, a])
    matrix = coo_array((entries, places), shape=(len(inside), len(inside))).tocsc()
    target = np.zeros((len(inside), sig_dims))
    np.add.at(target, b, step)
    np.add.at(target, a, -step)
    drift[inside[0]] = 0
    drift[inside[1:]] = splu(matrix[1:, 1:].tocsc()).solve(target[1:])
    return drift.reshape((*nav, sig_dims))


def _numbers(name: str, values: Any) -> AnyArray:
    found = np.asarray(values)  # computes lazy ones
    if found.dtype.kind not in "biuf":
        raise ArgumentTypeError(f"{name} must be an array of real numbers, not of {found.dtype}")
    return found.astype(np.float64)
