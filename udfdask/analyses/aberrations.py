"""Defocus and astigmatism: how they shift images of tilted beams, and what contrast they give."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from udfdask.base.types import AnyArray
from udfdask.corrections import coordinates

NUMBERS = ("defocus", "astigmatism", "astigmatism_angle", "scan_rotation")
"""The fields of `Aberrations` that are numbers."""


@dataclass(frozen=True, slots=True)
class Aberrations:
    """The aberrations of first order, and how the detector is turned against the scan.

    Notes
    -----
    The image of a beam that arrives at the angle a on the detector, a vector (y, x) in radians, is
    shifted by ``C @ R @ F @ a``. R and F are the rotation and the flip of `CoMUDF`. C is symmetric:
    its eigenvalues are ``defocus + astigmatism``, for a vector at `astigmatism_angle`, and
    ``defocus - astigmatism`` [1]_.

    The defocus is positive below focus: the beam crosses over behind the object. It is `C1,0` with
    the opposite sign, py4DSTEM's ``dF = -aberration_C1``.

    References
    ----------
    .. [1] A. R. Lupini, M. Chi and S. Jesse, "Rapid aberration measurement with pixelated
       detectors", Journal of Microscopy 263, 43 (2016).

    Examples
    --------
    >>> from udfdask.analyses import Aberrations
    >>> lens = Aberrations(defocus=20, astigmatism=4)
    >>> lens.shift_matrix()  # in nm per radian, (y, x)
    array([[16.,  0.],
           [ 0., 24.]])
    """

    defocus: float
    """Defocus in nm, positive below focus."""
    astigmatism: float = 0.0
    """Twofold astigmatism in nm: half the difference of the largest and the smallest defocus."""
    astigmatism_angle: float = 0.0
    """Direction of the largest defocus on the scan, in degrees from +x toward +y."""
    scan_rotation: float = 0.0
    """Angle in degrees by which vectors on the detector are rotated to be vectors on the scan."""
    flip_y: bool = False
    """Whether the y axis of the detector is flipped before the rotation."""

    def defocus_matrix(self) -> AnyArray:
        """Return C, the second derivatives of the path difference, in nm.

        Returns
        -------
        numpy.ndarray, shape (2, 2), float64
            A symmetric matrix for (y, x) vectors on the scan.

        Examples
        --------
        >>> from udfdask.analyses import Aberrations
        >>> Aberrations(defocus=20).defocus_matrix()
        array([[20.,  0.],
               [ 0., 20.]])
        """
        double = math.radians(2 * self.astigmatism_angle)
        cos, sin = self.astigmatism * math.cos(double), self.astigmatism * math.sin(double)
        return np.array([[self.defocus - cos, sin], [sin, self.defocus + cos]])

    def shift_matrix(self) -> AnyArray:
        """Return the matrix that turns angles on the detector into shifts of images.

        Returns
        -------
        numpy.ndarray, shape (2, 2), float64
            ``C @ R @ F``, in nm per radian.

        Examples
        --------
        >>> from udfdask.analyses import Aberrations
        >>> Aberrations(defocus=20, flip_y=True).shift_matrix()
        array([[-20.,   0.],
               [  0.,  20.]])
        """
        turn: AnyArray = coordinates.rotate_deg(self.scan_rotation)
        if self.flip_y:
            turn = turn @ coordinates.flip_y()
        return self.defocus_matrix() @ turn

    @classmethod
    def from_matrix(cls, matrix: AnyArray, near_rotation: float = 0.0) -> Aberrations:
        """Find the aberrations whose shifts a matrix gives.

        Parameters
        ----------
        matrix : numpy.ndarray, shape (2, 2)
            Turns angles on the detector into shifts of images, in nm per radian.
        near_rotation : float
            Of the two solutions, which differ by 180 degrees and the sign of the defocus, the one
            with the scan rotation nearer to this angle in degrees is returned.

        Returns
        -------
        Aberrations
            The astigmatism is positive, and taken for smaller than the defocus.

        Notes
        -----
        The polar decomposition of the matrix is a symmetric matrix, C, and a rotation [1]_.

        References
        ----------
        .. [1] G. Varnavides et al., "Iterative phase retrieval algorithms for scanning transmission
           electron microscopy", arXiv:2309.05250 (2023).

        Examples
        --------
        >>> from udfdask.analyses import Aberrations
        >>> lens = Aberrations(defocus=-20, scan_rotation=30, flip_y=True)
        >>> round(Aberrations.from_matrix(lens.shift_matrix()).defocus, 6)
        -20.0
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
        """Return the contrast of waves of a weak phase in the sum of the shifted images.

        Parameters
        ----------
        qy, qx : numpy.ndarray
            Spatial frequencies along y and x on the scan, in 1/nm.
        wavelength : float
            Wavelength of the electrons, in nm.
        semiangle : float
            Convergence semiangle, in radians.

        Returns
        -------
        numpy.ndarray, float64
            ``-2 * sin(pi * wavelength * q @ C @ q)`` for a phase of 1 rad, times the part of the
            aperture that overlaps with itself, shifted by q: below focus, slow parts of a positive
            phase are dark.

        Examples
        --------
        >>> from udfdask.analyses import Aberrations
        >>> lens = Aberrations(defocus=20)
        >>> float(lens.contrast_transfer(0.0, 2.0, wavelength=2e-3, semiangle=0.02).round(3))
        -0.841
        """
        (yy, yx), (_, xx) = self.defocus_matrix()
        path = yy * qy * qy + 2 * yx * qy * qx + xx * qx * qx
        x = np.minimum(np.hypot(qy, qx) * wavelength / (2 * semiangle), 1)
        overlap = 2 / np.pi * (np.arccos(x) - x * np.sqrt(1 - x * x))
        transfer: AnyArray = -2 * np.sin(np.pi * wavelength * path) * overlap
        return transfer
