"""Strain and rotation of a crystal, from the lattices of its diffraction patterns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import dask.array as da
import numpy as np

from udfdask.analyses.earlier_results import run_over, take_array
from udfdask.analyses.lattice import spans_plane
from udfdask.base.types import AnyArray
from udfdask.corrections import coordinates
from udfdask.errors import ArgumentValueError
from udfdask.geometry.axes import Axis
from udfdask.geometry.roi import Region, normalize_roi
from udfdask.masks import checks
from udfdask.results.result import Result
from udfdask.run.run_with_parameters import as_dask, takes_parameters_of
from udfdask.udf import UDF
from udfdask.udf.buffers import BufferSpec
from udfdask.udf.promises import Promises
from udfdask.udfs.shared.built_in import check_flag
from udfdask.udfs.shared.com_corrections import correction_matrix, degrees

MAPS = ("exx", "eyy", "exy", "rotation")
"""The results that are maps."""


class StrainUDF(UDF):
    """Compute strain and rotation from the lattice vectors of each frame.

    Parameters
    ----------
    reference : array-like of real numbers, shape (2, 2) or (3, 2), or region, optional
        The lattice without strain: its vectors `a` and `b` as rows (y, x), in pixels, also after an
        origin; or a region of the scan in any form that ``roi=`` takes, whose median it is. By
        default, it is the median of all positions.
    angle : float
        Direction of the x axis of the results in degrees, from the x axis of the scan towards y
        (clockwise on a screen).
    scan_rotation : float
        Angle in degrees by which vectors on the detector are rotated to those of the scan, as in
        `CoMUDF`: +90 maps +x to +y.
    flip_y : bool
        Whether y is flipped before this rotation.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If a parameter has a wrong type, shape or value, or the vectors of the reference are
        parallel; in `run_udf`, if frames are not of shape (2, 2), or the region does not fit the
        scan or is empty. While it runs, if no position of the region has a lattice.

    See Also
    --------
    strain_map : Runs this UDF over the result of `fit_lattice`.

    Notes
    -----
    A frame has the vectors `a` and `b` of a lattice in reciprocal space as rows (y, x), NaN if it
    has none. Buffers of kind nav, float64, NaN and not valid at positions without a lattice:

    - `exx`, `eyy`, `exy`: components of the strain, without a unit; 0.01 is 1 %. Positive `exx` is
      a longer crystal along x; `exy` is half of the change of the angle between x and y.
    - `rotation`, in radians: positive from x to y, clockwise on a screen.

    and `reference` of kind single, shape (2, 2), float64: the lattice without strain, (y, x).

    With vectors as rows of G, and of G0 without strain, real space is deformed by
    ``F = inv(G) @ G0``, the inverse transpose of that of reciprocal space [1]_. Its polar
    decomposition ``F = V @ R`` has the rotation R and the stretch V along the axes of the scan;
    strain is ``V - 1``. It is exact for rotations of any size, such as those of grains. The axes x
    and y are those of the scan if `scan_rotation` and `flip_y` are known.

    For small errors s of the components of vectors of length g, those of the strain are about
    ``s / g`` for `exx` and `eyy`, and ``s / (sqrt(2) * g)`` for `exy` and `rotation`.

    References
    ----------
    .. [1] V. B. Ozdol et al., "Strain mapping at nanometer resolution using advanced nano-beam
       electron diffraction", Applied Physics Letters 106, 253107 (2015).

    Examples
    --------
    >>> import dask.array as da, numpy as np, udfdask as ud
    >>> from udfdask.analyses import StrainUDF
    >>> lattice = np.array([[16.0, 0.0], [0.0, 16.0]])
    >>> scan = np.stack([lattice, lattice, lattice / (1.0, 1.02)])
    >>> res = ud.run_udf(da.from_array(scan, chunks=(1, 2, 2)), StrainUDF()).compute()
    >>> print(res["exx"].round(4), res["reference"][0])
    [0.   0.   0.02] [16.  0.]
    """

    whole_frames = True
    default_plots: ClassVar[tuple[str, ...]] = MAPS
    promises = Promises(declares_once=True)

    def __init__(
        self,
        reference: Any = None,
        *,
        angle: float = 0.0,
        scan_rotation: float = 0.0,
        flip_y: bool = False,
    ) -> None:
        turn = {"scan_rotation": degrees(scan_rotation), "flip_y": check_flag("flip_y", flip_y)}
        angle = checks.number("angle", angle, of="a number of degrees")
        super().__init__(reference=_checked_reference(reference), angle=angle, **turn)

    def get_result_buffers(self) -> Mapping[str, BufferSpec]:
        sig, dtype = tuple(self.meta.dataset_shape.sig), self.meta.input_dtype
        if sig != (2, 2) or dtype.kind != "f":
            raise ArgumentValueError(
                "StrainUDF needs the two vectors (y, x) of a lattice in each frame, real numbers "
                f"of shape (2, 2), but frames have the shape {sig} and dtype {dtype}: pass the "
                "result of fit_lattice to strain_map"
            )
        region = self._region()
        roi = True if self.meta.roi is None else self.meta.roi
        if region is not None and not (region & roi).any():
            raise ArgumentValueError("the region of the reference selects no position of the run")
        result = self.buffer("nav", dtype="float64", use="result_only")
        return {
            **dict.fromkeys(MAPS, result),
            "reference": self.buffer("single", (2, 2), "float64", use="result_only"),
            "vectors": self.buffer("nav", (2, 2), "float64", use="private"),
        }

    def _region(self) -> AnyArray | None:
        """Return the region of the reference as a mask of the scan; None if there is none."""
        given = self.params.reference
        return None if _is_vectors(given) else normalize_roi(given, self.meta.dataset_shape.nav)

    def get_result_axes(self) -> Mapping[str, tuple[Axis, ...]]:
        vector = Axis(name="vector", labels=("a", "b"))
        return {"reference": (vector, Axis(name="component", labels=("y", "x")))}

    def get_result_units(self) -> Mapping[str, str | None]:
        return {"exx": "", "eyy": "", "exy": "", "rotation": "rad", "reference": "px"}

    def process_tile(self, tile: AnyArray) -> None:
        self.results.vectors[:] = tile

    def get_results(self) -> Mapping[str, Any]:
        p, vectors, region = self.params, self.results.vectors, self._region()
        merged = self.meta.get_valid_nav_mask()
        known = chosen = merged & spans_plane(vectors)
        if region is not None:
            chosen = known & region[... if self.meta.roi is None else self.meta.roi].reshape(-1)
        reference = np.full((2, 2), np.nan)
        if _is_vectors(p.reference):
            reference = p.reference
        elif chosen.any():
            reference = np.median(vectors[chosen], axis=0)
        elif region is not None and merged.size and merged.all():
            raise ArgumentValueError(
                "no position in the region of the reference has a lattice: choose another region "
                "with reference=, or pass a lattice"
            )
        maps = np.full((4, len(vectors)), np.nan)
        matrix = correction_matrix(p.scan_rotation, p.flip_y)
        maps[:, known] = strain_of(vectors[known], reference, matrix, p.angle)
        found = {name: self.with_mask(m, ~np.isnan(m)) for name, m in zip(MAPS, maps, strict=True)}
        return {**found, "reference": reference}


def strain_of(
    vectors: AnyArray, reference: AnyArray, matrix: AnyArray, angle: float
) -> tuple[AnyArray, AnyArray, AnyArray, AnyArray]:
    """Return exx, eyy, exy and the rotation of lattices (n, 2, 2), as in `StrainUDF`.

    `matrix` maps vectors (y, x) on the detector to those of the scan.
    """
    deformation = matrix @ np.linalg.inv(vectors) @ reference @ matrix.T
    (yy, yx), (xy, xx) = np.moveaxis(deformation, 0, -1)
    rotation = np.arctan2(yx - xy, yy + xx)
    cos, sin = np.cos(rotation), np.sin(rotation)
    turn = np.moveaxis(np.array([[cos, sin], [-sin, cos]]), -1, 0)
    axes = coordinates.rotate_deg(-angle)
    strain = axes @ (deformation @ np.swapaxes(turn, 1, 2) - np.eye(2)) @ axes.T
    return strain[:, 1, 1], strain[:, 0, 0], (strain[:, 0, 1] + strain[:, 1, 0]) / 2, rotation


def _is_vectors(given: Any) -> bool:
    """Return whether a reference is a lattice: two vectors, also after an origin."""
    if not isinstance(given, (list, tuple, np.ndarray)):
        return False
    try:
        array = np.asarray(given)
    except ValueError:  # a list of positions with True or False
        return False
    return array.dtype.kind in "iuf" and array.shape in ((2, 2), (3, 2))


def _checked_reference(given: Any) -> Any:
    """Return a lattice as a NumPy array (2, 2), float64; a region as it is."""
    if not _is_vectors(given):
        return given
    vectors = np.asarray(given, np.float64)[-2:]
    if not spans_plane(vectors):
        raise ArgumentValueError(
            f"the vectors of reference must be finite and not parallel, not {vectors.tolist()}"
        )
    return vectors


@takes_parameters_of(StrainUDF)
def strain_map(lattice: Any, *, roi: Region | None = None, **options: Any) -> Result[da.Array]:
    """Map strain and rotation over a scan; nothing is computed yet.

    Parameters
    ----------
    lattice : Result, or array of real numbers, shape (*nav, 2, 2)
        The result of `fit_lattice`, lazy or computed, or the vectors `a` and `b` of each frame as
        rows (y, x), in pixels. Axes of the scan are taken from a result.
    roi
        As in `udfdask.run_udf`.
    **options
        Parameters of `StrainUDF`, such as `reference`, and options of `udfdask.run_udf`.

    Returns
    -------
    Result
        `exx`, `eyy`, `exy`, `rotation` and `reference`, as in `StrainUDF`; ``.plot()`` draws the
        four maps.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        As in `StrainUDF`, or if the region does not fit the scan.
    UDFError
        As in `udfdask.run_udf`.

    Examples
    --------
    >>> import numpy as np
    >>> from udfdask.analyses import strain_map
    >>> lattice = np.tile(np.array([[16.0, 0.0], [0.0, 16.0]]), (2, 4, 1, 1))
    >>> lattice[:, 2:] /= (1.0, 1.02)  # longer in real space is shorter in reciprocal space
    >>> strain_map(lattice, reference=np.s_[:, :2])["exx"].compute().round(4)
    array([[0.  , 0.  , 0.02, 0.02],
           [0.  , 0.  , 0.02, 0.02]])
    """
    if isinstance(lattice, Mapping):
        (a, axes), (b, _) = (take_array(lattice, (name,), "fit_lattice") for name in "ab")
        options |= {"of": a, "scan": axes and axes[:-1], "roi": roi}
        vectors = da.stack([as_dask(a), as_dask(b)], axis=-2)
    else:
        vectors, axes = take_array(lattice, (), "fit_lattice")
        options |= {"of": vectors, "scan": axes and axes[:-2], "roi": roi}
    return run_over(strain_map, StrainUDF, vectors, **options)
