"""Find all diffraction disks of each frame, without a list of their places."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import dask.array as da
import numpy as np

from udfdask.analyses import disk_correlation
from udfdask.base.types import is_lazy
from udfdask.errors import ArgumentValueError
from udfdask.geometry.axes import Axis
from udfdask.geometry.roi import Region
from udfdask.masks import checks
from udfdask.results.result import Result
from udfdask.run.run_with_parameters import run_with_parameters, takes_parameters_of
from udfdask.udf.buffers import BufferSpec
from udfdask.udf.promises import Promises
from udfdask.udfs.shared.built_in import check_choice, check_flag
from udfdask.udfs.shared.geometry_parameters import read_length
from udfdask.udfs.shared.templates import TemplateUDF

LEAST = {"cross": 0.02, "hybrid": 0.2, "phase": 0.3}
"""Default of `min_correlation`: shot noise makes maxima of about 0.01, 0.15 and 0.25."""

STACK = 2**18
"""Pixels at a time: 1 MiB of float32. Tiles of 8 MiB, and their spectra, take 1.4 times as long."""


class FindDisksUDF(TemplateUDF):
    """Find all diffraction disks of each frame, by correlation with the image of a disk.

    Parameters
    ----------
    template : DiskTemplate, array-like of real numbers or opened file, shape (height, width)
        Image of a disk, such as a recording without a specimen, minus its background. A negative
        ring around the disk makes it blind to a background that varies slowly. At few counts and
        without such a background, ``np.log1p(100 * image / image.max())`` is more exact.
    correlation : {"cross", "hybrid", "phase"}
        The power of the amplitudes of the waves: 1, 0.5 or 0. "cross" is most exact for evenly
        filled disks, because noise counts least. "hybrid" and "phase" are for unevenly filled ones:
        edges count more.
    center : tuple of float, optional
        Center of the disk in the template (y, x), in pixels; by default the center of mass of its
        positive part.
    min_spacing : float, optional
        Least distance between disks, in pixels or as ``"2 mrad"``: of nearer ones, that with the
        highest correlation is found. By default the radius of the disk.
    edge : float, optional
        Least distance of a center from the border of the frame, in pixels or as ``"2 mrad"``. By
        default the radius of the disk: those that the border cuts would be too far inside.
    min_correlation : float, optional
        Least correlation, relative to that of the strongest disk of the frame, 0 to 1. By default
        0.02 for "cross", 0.2 for "hybrid" and 0.3 for "phase".
    max_disks : int
        Largest number of disks whose positions are stored. Those with the lowest correlation are
        dropped; `num_disks` tells their number.
    subpixel : bool
        Whether positions are refined to parts of a pixel.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If a parameter has a wrong type, shape or value; in `run_udf`, if frames are not 2-D or not
        real, or smaller than the template.

    See Also
    --------
    find_disks : Makes this UDF and runs it.
    udfdask.udfs.CorrelationUDF : Finds disks near given positions.

    Notes
    -----
    Buffers, all of kind nav, with the highest correlation first, and NaN behind the last disk:

    - `positions`, extra shape (max_disks, 2), float32: centers (y, x), in pixels.
    - `intensity`, extra shape (max_disks,), float32: sum over the positive part of the template,
      in the unit of the data, above the ring around it, or without a ring above the mean of the
      frame.
    - `correlation`, extra shape (max_disks,), float32: 1 for a copy of the template, 20 ("cross"),
      4.5 ("hybrid") or 1 ("phase") for one that is 20 times as bright.
    - `num_disks`, int32: number of all disks that were found.

    Frames count as periodic, but a template that reaches over the border sees there the smallest
    value of the frame. The correlation, blurred by 0.5 pixels, is a sum of waves also between
    pixels [1]_; Newton's method finds its maxima.

    At 200 counts a pixel, disks of radius 6 to 10 are found within 0.011 to 0.016 pixels along each
    axis ("cross", root mean square), 0.03 ("hybrid") or 0.03 to 0.06 ("phase"). If the intensity
    within each disk varies by 80 %, it is 0.34, 0.07 and 0.06. In a frame with NaN or infinite
    pixels, nothing is found.

    References
    ----------
    .. [1] M. Guizar-Sicairos, S. T. Thurman, J. R. Fienup, "Efficient subpixel image registration
       algorithms", Optics Letters 33, 156-158 (2008).

    Examples
    --------
    >>> import dask.array as da, udfdask as ud
    >>> from udfdask.analyses import FindDisksUDF
    >>> from udfdask.masks import DiskTemplate, circular
    >>> frame = circular(centerX=13.4, centerY=9, imageSizeX=24, imageSizeY=20, radius=4,
    ...                  antialiased=True)
    >>> x = da.from_array(frame[None].repeat(3, axis=0), chunks=(1, 20, 24))
    >>> res = ud.run_udf(x, FindDisksUDF(DiskTemplate(radius=4, radius_outer=6))).compute()
    >>> print(res["num_disks"], res["positions"][0, 0].round(1))
    [1 1 1] [ 9.  13.4]
    """

    whole_frames = True
    calibrated: ClassVar[Mapping[str, str]] = {
        "template": "lengths",
        "min_spacing": "length",
        "edge": "length",
    }
    default_plots: ClassVar[tuple[str, ...]] = ("num_disks",)
    promises = Promises(declares_once=True, starts_no_threads=True)

    def __init__(
        self,
        template: Any,
        *,
        correlation: str = "cross",
        center: Any = None,
        min_spacing: Any = None,
        edge: Any = None,
        min_correlation: float | None = None,
        max_disks: int = 70,
        subpixel: bool = True,
    ) -> None:
        check_choice("correlation", correlation, tuple(disk_correlation.POWERS))
        if center is not None:
            pair = checks.pair("center", center, "a position (y, x) in the template, in pixels")
            center = tuple(checks.number(f"center[{k}]", one) for k, one in enumerate(pair))
        part = LEAST[correlation] if min_correlation is None else min_correlation
        part = checks.number("min_correlation", part, of="a number from 0 to 1")
        if not 0 <= part <= 1:
            raise ArgumentValueError(f"min_correlation must be from 0 to 1, not {part!r}")
        super().__init__(
            template=template,
            correlation=correlation,
            center=center,
            min_spacing=read_length("min_spacing", min_spacing, positive=True),
            edge=read_length("edge", edge),
            min_correlation=part,
            max_disks=checks.integer("max_disks", max_disks, least=1),
            subpixel=check_flag("subpixel", subpixel),
        )
        known = self._template
        if not is_lazy(known) and known is not None and not (known > 0).any():
            raise ArgumentValueError("template has no positive pixel: pass the image of a disk")

    def get_result_buffers(self) -> Mapping[str, BufferSpec]:
        sig = self._frame_shape()
        edge = self.params.edge if is_lazy(self._template) else self._lengths()["edge"]
        if edge is not None and 2 * round(edge) >= min(sig):
            raise ArgumentValueError(
                f"no pixel of frames of shape {sig} is {edge:.3g} pixels from the border: pass a "
                "smaller edge="
            )
        n = self.params.max_disks
        return {
            "positions": self.buffer("nav", (n, 2)),
            "intensity": self.buffer("nav", (n,)),
            "correlation": self.buffer("nav", (n,)),
            "num_disks": self.buffer("nav", dtype="int32"),
        }

    def get_result_axes(self) -> Mapping[str, tuple[Axis, ...]]:
        disk, component = Axis(name="disk"), Axis(name="component", labels=("y", "x"))
        return {"positions": (disk, component), "intensity": (disk,), "correlation": (disk,)}

    def get_result_units(self) -> Mapping[str, str | None]:
        return {"positions": "px", "intensity": self.meta.unit, "num_disks": ""}

    def _lengths(self) -> dict[str, float]:
        """Return the options that have the radius of the disk as their default."""
        given = {"min_spacing": self.params.min_spacing, "edge": self.params.edge}
        radius = disk_correlation.disk_radius(self._template)
        return {name: radius if value is None else value for name, value in given.items()}

    def get_shared_task_data(self) -> Mapping[str, Any]:
        """Return the transform of the template, and lengths in pixels."""
        p, template = self.params, np.asarray(self._template, np.float64)
        center = disk_correlation.disk_center(template) if p.center is None else p.center
        sig, lengths = self._frame_shape(), self._lengths()
        about = template, center, sig, p.correlation, lengths["edge"]
        limits = round(lengths["edge"]), lengths["min_spacing"], p.min_correlation, p.max_disks
        return {"filter": disk_correlation.make_filter(*about), "limits": limits}

    def process_tile(self, tile: Any) -> None:
        p, task, results = self.params, self.task_data, self.results
        step = max(STACK // math.prod(tile.shape[1:]), 1)
        for start in range(0, len(tile), step):
            rows = slice(start, start + step)
            with np.errstate(invalid="ignore", over="ignore"):  # pixels can be infinite
                frames = tile[rows].astype(np.float32, copy=False)
                how = task.filter, task.limits
                found = disk_correlation.find_in_frames(frames, *how, subpixel=p.subpixel)
            results.positions[rows], results.intensity[rows] = found[:2]
            results.correlation[rows], results.num_disks[rows] = found[2:]


@takes_parameters_of(FindDisksUDF)
def find_disks(
    data: Any, template: Any, *, roi: Region | None = None, **options: Any
) -> Result[da.Array]:
    """Find all diffraction disks of each frame; nothing is computed yet.

    Parameters
    ----------
    data : dask.array.Array or OpenedFile, shape (*nav, height, width)
        The data.
    template, roi, **options
        Parameters of `FindDisksUDF`, such as `correlation`, and options of `udfdask.run_udf`.

    Returns
    -------
    Result
        `positions`, `intensity`, `correlation` and `num_disks`, as in `FindDisksUDF`: lazy arrays.

    Raises
    ------
    UDFError
        As in `FindDisksUDF` and `udfdask.run_udf`.

    Examples
    --------
    >>> from udfdask.analyses import find_disks
    >>> from udfdask.demo import make_recording
    >>> from udfdask.masks import DiskTemplate
    >>> scan = make_recording(nav_shape=(2, 3), sig_shape=(96, 96))
    >>> disks = find_disks(scan, DiskTemplate(radius=6, radius_outer=9))
    >>> disks["positions"].shape
    (2, 3, 70, 2)
    >>> print(disks["num_disks"].compute().min())
    15
    """
    options |= {"template": template, "roi": roi}
    return run_with_parameters(find_disks, FindDisksUDF, data, **options)
