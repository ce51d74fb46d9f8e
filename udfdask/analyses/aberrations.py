"""Defocus and astigmatism: how they shift images of tilted beams, and what contrast they give."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from udfdask.base.types import AnyArray
from udfdask.corrections import coordinates
from udfdask.errors import ArgumentTypeError
from udfdask.geometry.units import Quantity, as_quantity, factor
from udfdask.masks import checks
from udfdask.udfs.shared.built_in import check_flag
from udfdask.udfs.shared.com_corrections import correction_matrix, degrees


@dataclass(frozen=True, slots=True)
class Aberrations:
    """The aberrations of first order, and how the detector is turned against the scan.

    The image of a beam that arrives at the angle a on the detector, a vector (y, x) in radians, is
    shifted by ``C @ R @ F @ a``. R and F are the rotation and the flip of `CoMUDF`. C is symmetric,
    the second derivatives of the path difference (Lupini, Chi and Jesse, Journal of Microscopy 263,
    43 (2016)).
    """

    defocus: float
    """Defocus in nm, positive below focus: the beam crosses over behind the object."""
    astigmatism: float = 0.0
    """Twofold astigmatism in nm: half the difference of the largest and the smallest defocus."""
    astigmatism_angle: float = 0.0
    """Direction of the largest defocus on the scan, in degrees from +x toward +y."""
    scan_rotation: float = 0.0
    """Angle in degrees by which vectors on the detector are rotated to be vectors on the scan."""
    flip_y: bool = False
    """Whether the y axis of the detector is flipped before the rotation."""

    def defocus_matrix(self) -> AnyArray:
        """Return C in nm, shape (2, 2), for (y, x) vectors on the scan."""
        double = math.radians(2 * self.astigmatism_angle)
        cos, sin = self.astigmatism * math.cos(double), self.astigmatism * math.sin(double)
        return np.array([[self.defocus - cos, sin], [sin, self.defocus + cos]])

    def shift_matrix(self) -> AnyArray:
        """Return ``C @ R @ F`` in nm per radian, shape (2, 2)."""
        turn = correction_matrix(self.scan_rotation, self.flip_y)
        return np.asarray(self.defocus_matrix() @ turn)

    @classmethod
    def from_matrix(cls, matrix: AnyArray, near_rotation: float = 0.0) -> Aberrations:
        """Return the aberrations whose shifts a matrix gives, by a polar decomposition.

        Of the two solutions, which differ by 180 degrees and the sign of the defocus, it is the one
        whose rotation is nearer to an angle. The astigmatism is taken for smaller than the defocus.
        """
        turn, bend = linalg.polar(matrix, side="left")
        flip_y = bool(linalg.det(turn) < 0)
        rotation = turn @ coordinates.flip_y() if flip_y else turn
        angle = math.degrees(math.atan2(rotation[0, 1], rotation[0, 0]))
        away = (angle - near_rotation + 180) % 360 - 180
        if abs(away) > 90:
            bend, away = -bend, away - math.copysign(180, away)
        (low, high), vectors = linalg.eigh(bend)
        y, x = vectors[:, 1]
        return cls(
            defocus=float(low + high) / 2,
            astigmatism=float(high - low) / 2,
            astigmatism_angle=math.degrees(math.atan2(y, x)) % 180,
            scan_rotation=(near_rotation + away + 180) % 360 - 180,
            flip_y=flip_y,
        )

    def contrast_transfer(
        self, qy: AnyArray, qx: AnyArray, *, wavelength: float, semiangle: float
    ) -> AnyArray:
        """Return the contrast of waves with a phase of 1 rad in the sum of the shifted images.

        The frequencies q are in 1/nm, the wavelength is in nm and the semiangle in radians.
        """
        (yy, yx), (_, xx) = self.defocus_matrix()
        path = (yy * qy + 2 * yx * qx) * qy + xx * qx * qx
        x = np.minimum(np.sqrt(qy * qy + qx * qx) * wavelength / (2 * semiangle), 1)
        overlap = 2 / np.pi * (np.arccos(x) - x * np.sqrt(1 - x * x))
        return np.asarray(-2 * np.sin(np.pi * wavelength * path) * overlap)


def read_lens(scan_rotation: Any, flip_y: Any, angle: Any, **lengths: Any) -> dict[str, Any]:
    """Return aberrations that a user gave, lengths in nm and angles in degrees, or raise."""
    return {
        **{name: _nanometers(name, length) for name, length in lengths.items()},
        "astigmatism_angle": checks.number("astigmatism_angle", angle, of="a number of degrees"),
        "scan_rotation": degrees(scan_rotation),
        "flip_y": check_flag("flip_y", flip_y),
    }


def _nanometers(name: str, given: Any) -> float:
    """Return a length in nm, from a number or such as "0.1 um"; raise if it is not one."""
    value = as_quantity(name, given)
    if isinstance(value, Quantity):
        try:
            return value.value * factor(value.unit, "nm")
        except ValueError as error:
            raise ArgumentTypeError(f"{name} must be a length, not {given!r}: {error}") from None
    return checks.number(name, value, of="a number of nm")
