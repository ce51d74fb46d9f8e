"""Integrate the deflection of the beam: the phase of a thin object."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Unpack

import numpy as np

from udfdask.analyses.earlier_results import take_array
from udfdask.analyses.integration import BORDERS, integrate_gradient
from udfdask.base.types import AnyArray
from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.geometry.axes import shared_unit, steps
from udfdask.geometry.electrons import factor_at
from udfdask.geometry.roi import Region
from udfdask.masks import checks
from udfdask.results.result import Result
from udfdask.run.options import RunOptions
from udfdask.run.run_udf import run_udf
from udfdask.udf import UDF
from udfdask.udf.buffers import BufferSpec
from udfdask.udfs.com import CoMUDF, over_scan
from udfdask.udfs.shared.built_in import check_choice, check_scan


class _IntegratingUDF(UDF):
    """A UDF that integrates a field of deflections over its scan."""

    def _phase_buffer(self, unit: str | None) -> BufferSpec:
        """Return the declaration of the phase; raise if the scan or the units do not allow it."""
        check_scan(self)
        self._radians_per(unit)
        return self.buffer("nav", dtype="float64", use="result_only")

    def _radians_per(self, unit: str | None) -> float:
        """Return the derivative of the phase, per unit of the scan axes, of a deflection of 1."""
        length = shared_unit(self.meta.axes[: len(self.meta.dataset_shape.nav)])
        try:
            per = factor_at(self.meta.voltage, unit or "px", f"1/{length or 'px'}")
        except ValueError as error:
            raise ArgumentValueError(
                f"a phase needs deflections in mrad or 1/nm over a scan in nm ({error}): pass "
                "axes=[Axis(name='y', unit='nm', scale=0.05), ...] with an axis for each dimension "
                "of the data, and for angles voltage='300 kV'"
            ) from None
        return 2 * math.pi * per

    def _integrated(self, field_y: AnyArray, field_x: AnyArray, unit: str | None) -> Any:
        """Return the phase of a field over the scan, valid where the field is known."""
        p, scale = self.params, self._radians_per(unit)
        scan = steps(self.meta.axes[:2])
        how = {"steps": scan, "borders": p.borders, "high_pass": p.high_pass}
        phase = integrate_gradient(scale * field_y, scale * field_x, **how)
        return self.with_mask(phase, ~np.isnan(phase))


def _checked(borders: Any, high_pass: Any) -> dict[str, Any]:
    """Return the parameters of the integration."""
    check_choice("borders", borders, BORDERS)
    value = checks.number("high_pass", high_pass, of="a spatial frequency")
    if value < 0:
        raise ArgumentValueError(f"high_pass must not be negative, but it is {value:g}")
    return {"borders": borders, "high_pass": value}


class IntegratedDPCUDF(CoMUDF, _IntegratingUDF):
    """Compute the phase of a thin object from centers of mass (integrated DPC).

    The deflection of the beam is the gradient of the phase, blurred by the intensity of the probe:
    ``gradient = 2 * pi * angle / wavelength``. It is integrated over the scan.

    Parameters
    ----------
    cy, cx, r, ri, scan_rotation, flip_y, regression, centers, stretch, stretch_angle, center
        As for `CoMUDF`; `ScanRotationUDF` guesses the rotation and the flip.
    borders : {"mirrored", "periodic"}
        What is beyond the border of the scan. Over a region of interest, neither counts.
    high_pass : float
        Spatial frequency below which the phase is damped, in periods per unit of the scan axes.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        As for `CoMUDF`; in `run_udf`, if the scan is not 2-D with at least 2 positions along each
        axis, axes have no unit, or deflections are angles and the run has no voltage.

    See Also
    --------
    integrated_dpc : Runs this UDF, or integrates the field of an earlier run.
    udfdask.analyses.integrate_gradient : The integration.

    Notes
    -----
    The results are those of `CoMUDF`, and `phase` of kind nav, float64, in radians, with a mean of
    0 over each connected region. It is NaN where the field is not known: outside of the region of
    interest, and in snapshots.

    Atoms attract electrons: with the right rotation, they are maxima of the phase. A rotation by
    180 degrees changes the sign, and does not change the curl: a rotation that was chosen by its
    curl alone can give the opposite sign. py4DSTEM exchanges the components y and x where they are
    flipped here; an exchange is a flip of y and then a rotation by 90 degrees.

    References
    ----------
    .. [1] I. Lazic, E. G. T. Bosch and S. Lazar, "Phase contrast STEM for thin samples: Integrated
       differential phase contrast", Ultramicroscopy 160, 265 (2016).

    Examples
    --------
    >>> import numpy as np, udfdask as ud
    >>> from udfdask.analyses import IntegratedDPCUDF
    >>> from udfdask.demo import PhaseObject
    >>> thin = PhaseObject(nav_shape=(24, 24), sig_shape=(48, 48))
    >>> phase = ud.run_udf(thin, IntegratedDPCUDF(), voltage="300 kV")["phase"].compute()
    >>> difference = phase - thin.blurred_phase
    >>> bool(np.std(difference) < 0.02)
    True
    """

    default_plots = ("phase",)
    promises = CoMUDF.promises

    def __init__(
        self,
        cy: float | None = None,
        cx: float | None = None,
        r: float = math.inf,
        ri: float | None = 0.0,
        scan_rotation: float = 0.0,
        flip_y: bool = False,
        regression: Any = -1,
        centers: Any = None,
        stretch: float = 1.0,
        stretch_angle: float = 0.0,
        center: Any = None,
        *,
        borders: str = "mirrored",
        high_pass: float = 0.0,
    ) -> None:
        place = centers, stretch, stretch_angle, center
        CoMUDF.__init__(self, cy, cx, r, ri, scan_rotation, flip_y, regression, *place)
        UDF.__init__(self, **self._kwargs, **_checked(borders, high_pass))

    def get_result_buffers(self) -> Mapping[str, BufferSpec]:
        phase = self._phase_buffer(shared_unit(self.meta.axes[-2:]))
        return {**super().get_result_buffers(), "phase": phase}

    def get_result_units(self) -> Mapping[str, str | None]:
        """Name the units: those of `CoMUDF`, and radians."""
        return {**super().get_result_units(), "phase": "rad"}

    def get_field_results(self, field_y: Any, field_x: Any) -> Mapping[str, Any]:
        """Compute the phase as well."""
        phase = self._integrated(field_y, field_x, shared_unit(self.meta.axes[-2:]))
        return {**super().get_field_results(field_y, field_x), "phase": phase}


class IntegratedFieldUDF(_IntegratingUDF):
    """Integrate a field: data of shape (ny, nx, 2), whose frames are vectors (y, x).

    Parameters
    ----------
    unit : str
        Unit of the vectors, such as "mrad" or "1/nm".
    borders, high_pass
        As for `IntegratedDPCUDF`.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        As for `IntegratedDPCUDF`; in `run_udf`, if frames are not pairs of real numbers.

    Notes
    -----
    The result is `phase`, as there.

    Examples
    --------
    >>> import dask.array as da, numpy as np, udfdask as ud
    >>> from udfdask.analyses import IntegratedFieldUDF
    >>> field = da.from_array(np.broadcast_to([0.0, 1.0], (4, 5, 2)))
    >>> scan = [ud.Axis(name=name, unit="nm", scale=0.1) for name in "yx"]
    >>> axes = [*scan, ud.Axis(name="component", labels=("y", "x"))]
    >>> udf = IntegratedFieldUDF(unit="1/nm")
    >>> phase = ud.run_udf(field, udf, sig_dims=1, axes=axes)["phase"].compute()
    >>> bool(phase[0, 4] > phase[0, 0])
    True
    """

    def __init__(self, *, unit: str, borders: str = "mirrored", high_pass: float = 0.0) -> None:
        super().__init__(unit=unit, **_checked(borders, high_pass))

    def get_preferred_input_dtype(self) -> Any:
        """Use float64."""
        return np.float64

    def get_result_buffers(self) -> Mapping[str, BufferSpec]:
        sig = tuple(self.meta.dataset_shape.sig)
        if sig != (2,):
            raise ArgumentValueError(f"a field has vectors (y, x) as its frames, not {sig}")
        field = self.buffer("nav", (2,), "float64", use="private")
        return {"field": field, "phase": self._phase_buffer(self.params.unit)}

    def get_result_units(self) -> Mapping[str, str | None]:
        """Name the unit: radians."""
        return {"phase": "rad"}

    def process_partition(self, partition: AnyArray) -> None:
        self.results.field[:] = partition

    def get_results(self) -> Mapping[str, Any]:
        valid = self.meta.get_valid_nav_mask()
        merged = np.where(valid[:, np.newaxis], self.results.field, np.nan)
        field_y, field_x = over_scan(self.meta, merged)
        return {"phase": self._integrated(field_y, field_x, self.params.unit)}


def integrated_dpc(
    data: Any,
    *,
    borders: str = "mirrored",
    high_pass: float = 0.0,
    com: Mapping[str, Any] | None = None,
    roi: Region | None = None,
    **options: Unpack[RunOptions],
) -> Result:
    """Compute the phase of a thin object: from frames, or from the result of `CoMUDF`.

    Parameters
    ----------
    data : dask.array.Array, opened file, or Result
        Frames over a 2-D scan, shape (ny, nx, sig_y, sig_x), with units on their axes; or a result
        with the field of `CoMUDF`, whose rotation and flip are in it.
    borders, high_pass
        As for `IntegratedDPCUDF`.
    com : mapping, optional
        Parameters of `CoMUDF`, such as ``{"scan_rotation": 30, "r": "25 mrad"}``.
    roi : optional
        Scan positions to use, as in `udfdask.run_udf`.
    **options
        Options of `udfdask.run_udf`, such as `axes`, and `voltage` if deflections are
        angles; by default, a result has the voltage of its run.

    Returns
    -------
    Result
        The lazy result of `IntegratedDPCUDF` or `IntegratedFieldUDF`, with `phase` in radians.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        As these UDFs; if a result has no field, or `com` comes with one.

    Examples
    --------
    >>> from udfdask.analyses import integrated_dpc
    >>> from udfdask.demo import PhaseObject
    >>> thin = PhaseObject(nav_shape=(24, 24), scan_rotation=30)
    >>> result = integrated_dpc(thin, voltage="300 kV", com={"scan_rotation": 30})
    >>> result["phase"]
    dask.array<integrateddpcudf-phase-nav, shape=(24, 24), dtype=float64, ...>
    """
    how: dict[str, Any] = {"borders": borders, "high_pass": high_pass}
    if not isinstance(data, Result):
        return run_udf(data, IntegratedDPCUDF(**(com or {}), **how), roi=roi, **options)
    if com:
        raise ArgumentTypeError(
            "com has parameters of CoMUDF, but this result has its field already: pass the frames"
        )
    field, axes = take_array(data, ("field",), "CoMUDF")
    known: dict[str, Any] = {"voltage": data.calibration.voltage, **options, "axes": axes}
    udf = IntegratedFieldUDF(unit=data.units["field"] or "px", **how)
    phase: Result = run_udf(field, udf, sig_dims=1, roi=roi, **known)
    return phase
