"""Integrate the deflection of the beam: the phase of a thin object."""

from __future__ import annotations

import math
from collections.abc import Mapping
from inspect import signature
from typing import Any

import dask.array as da
import numpy as np

from udfdask.analyses.earlier_results import take_array
from udfdask.analyses.integration import checked_options, integrate_gradient
from udfdask.base.types import AnyArray
from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.geometry.axes import shared_unit, steps
from udfdask.geometry.electrons import factor_at
from udfdask.geometry.roi import Region
from udfdask.results.result import Result
from udfdask.run.run_with_parameters import run_with_parameters, takes_parameters_of
from udfdask.udf import UDF
from udfdask.udf.buffers import BufferSpec
from udfdask.udf.meta import UDFMeta
from udfdask.udfs.com import CoMUDF, over_scan
from udfdask.udfs.shared.built_in import check_scan


def _phase_buffer(udf: UDF, unit: str | None) -> BufferSpec:
    """Return the declaration of the phase; raise if the scan or the units do not allow it."""
    check_scan(udf)
    _radians_per(udf.meta, unit)
    return udf.buffer("nav", dtype="float64", use="result_only")


def _radians_per(meta: UDFMeta, unit: str | None) -> float:
    """Return the derivative of the phase, per unit of the scan axes, of a deflection of 1."""
    length = shared_unit(meta.axes[:2])
    try:
        per = factor_at(meta.voltage, unit or "px", f"1/{length or 'px'}")
    except ValueError as error:
        raise ArgumentValueError(
            f"a phase needs deflections in mrad or 1/nm over a scan in nm ({error}): pass "
            "axes=[Axis(name='y', unit='nm', scale=0.05), ...] with an axis for each dimension "
            "of the data, and for angles voltage='300 kV' (--scale and --voltage in a shell)"
        ) from None
    return 2 * math.pi * per


def _phase(udf: UDF, field_y: AnyArray, field_x: AnyArray, unit: str | None) -> Any:
    """Return the phase of a field over the scan, valid where the field is known."""
    p, scale = udf.params, _radians_per(udf.meta, unit)
    how = {"steps": steps(udf.meta.axes[:2]), "borders": p.borders, "high_pass": p.high_pass}
    phase = integrate_gradient(scale * field_y, scale * field_x, **how)
    return udf.with_mask(phase, ~np.isnan(phase))


class IntegratedDPCUDF(CoMUDF):
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
    180 degrees changes the sign, and does not change the curl.

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
    >>> bool(np.std(phase - thin.blurred_phase) < 0.02)
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
        super().__init__(cy, cx, r, ri, scan_rotation, flip_y, regression, *place)
        UDF.__init__(self, **self._kwargs, **checked_options(borders, high_pass))

    def get_result_buffers(self) -> Mapping[str, BufferSpec]:
        phase = _phase_buffer(self, shared_unit(self.meta.axes[-2:]))
        return {**super().get_result_buffers(), "phase": phase}

    def get_result_units(self) -> Mapping[str, str | None]:
        return {**super().get_result_units(), "phase": "rad"}

    def get_field_results(self, field_y: Any, field_x: Any) -> Mapping[str, Any]:
        phase = _phase(self, field_y, field_x, shared_unit(self.meta.axes[-2:]))
        return {**super().get_field_results(field_y, field_x), "phase": phase}


class IntegratedFieldUDF(UDF):
    """Integrate a field, whose frames are vectors (y, x), to the `phase` of `IntegratedDPCUDF`.

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
        super().__init__(unit=unit, **checked_options(borders, high_pass))

    def get_preferred_input_dtype(self) -> Any:
        return np.float64

    def get_result_buffers(self) -> Mapping[str, BufferSpec]:
        sig = tuple(self.meta.dataset_shape.sig)
        if sig != (2,):
            raise ArgumentValueError(f"a field has vectors (y, x) as its frames, not {sig}")
        field = self.buffer("nav", (2,), "float64", use="private")
        return {"field": field, "phase": _phase_buffer(self, self.params.unit)}

    def get_result_units(self) -> Mapping[str, str | None]:
        return {"phase": "rad"}

    def process_partition(self, partition: AnyArray) -> None:
        self.results.field[:] = partition

    def get_results(self) -> Mapping[str, Any]:
        valid = self.meta.get_valid_nav_mask()[:, np.newaxis]
        field = over_scan(self.meta, np.where(valid, self.results.field, np.nan))
        return {"phase": _phase(self, *field, self.params.unit)}


@takes_parameters_of(IntegratedDPCUDF)
def integrated_dpc(data: Any, *, roi: Region | None = None, **options: Any) -> Result[da.Array]:
    """Compute the phase of a thin object: from frames, or from the result of `CoMUDF`.

    Parameters
    ----------
    data : dask.array.Array, opened file, or Result
        Frames over a 2-D scan, shape (ny, nx, sig_y, sig_x), with units on their axes; or a result
        with the field of `CoMUDF`, whose rotation and flip are in it.
    roi, **options
        Parameters of `IntegratedDPCUDF`, with a result only `borders` and `high_pass`, and options
        of `udfdask.run_udf`, such as `axes`, and `voltage` if deflections are angles. A result has
        the axes of its run, and by default its voltage.

    Returns
    -------
    Result
        The lazy result of `IntegratedDPCUDF` or `IntegratedFieldUDF`, with `phase` in radians.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        As these UDFs; if a result has no field, or comes with axes or parameters of `CoMUDF`.

    Examples
    --------
    >>> from udfdask.analyses import integrated_dpc
    >>> from udfdask.demo import PhaseObject
    >>> thin = PhaseObject(nav_shape=(24, 24), scan_rotation=30)
    >>> result = integrated_dpc(thin, voltage="300 kV", scan_rotation=30)
    >>> result["phase"]
    dask.array<integrateddpcudf-phase-nav, shape=(24, 24), dtype=float64, ...>
    """
    if not isinstance(data, Result):
        return run_with_parameters(integrated_dpc, IntegratedDPCUDF, data, roi=roi, **options)
    known = (*signature(CoMUDF).parameters, "axes", "unit", "sig_dims")
    if made := [name for name in known if name in options]:
        raise ArgumentTypeError(
            f"this result has the field of CoMUDF and its axes already: leave out "
            f"{', '.join(made)}, or pass the frames"
        )
    field, axes = take_array(data, ("field",), "CoMUDF")
    options = {"voltage": data.calibration.voltage, **options, "axes": axes, "sig_dims": 1}
    options |= {"unit": data.units["field"] or "px", "roi": roi}
    return run_with_parameters(integrated_dpc, IntegratedFieldUDF, field, **options)
