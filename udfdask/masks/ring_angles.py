"""Share pixels between a few equidistant angles, for Fourier series along rings.

A sum of ``I exp(i n phi)`` over pixels takes two products for each pixel and order, 50 for the
orders up to 24. Here, each pixel is shared between some neighboring angles of a grid, with weights
that serve all orders. The orders are then computed from the sums at the angles. This is a
nonuniform Fourier transform (Fessler and Sutton 2003, doi:10.1109/TSP.2002.807005).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfdask.types import AnyArray

PER_ORDER = 4
"""Angles of the grid for each order."""

TERMS = {4: 9, 8: 15}
"""Number of angles that share a pixel, by the size of the floats. The error of a coefficient is at
most 2e-7 or 1e-12 of the sum of the weighted intensities."""


class SharedAngles(NamedTuple):
    """Weights of pixels at the angles of a grid, and the waves at these angles."""

    first: AnyArray
    """First angle of the grid that has a weight for a pixel, int64, shape (pixels,)."""
    weights: AnyArray
    """Weights at this angle and the next ones (the grid is a circle), shape (pixels, terms)."""
    waves: AnyArray
    """Factors of the sum at each angle, shape (angles, 2 * orders), float64: the real and the
    imaginary part of an order are in adjacent columns."""


def share_angles(phi: AnyArray, n_orders: int, real: np.dtype[np.floating]) -> SharedAngles:
    """Return weights of pixels at angles `phi` for the orders from 0 on, in the dtype `real`.

    If there are few orders, the weights are the waves, and each "angle" of the grid is the real or
    the imaginary part of an order.
    """
    orders, terms = np.arange(n_orders), TERMS[real.itemsize]
    if 2 * n_orders <= terms:
        exact = np.exp(1j * orders * phi[:, np.newaxis]).view(np.float64)
        return SharedAngles(np.zeros(len(phi), np.int64), exact.astype(real), np.eye(2 * n_orders))
    angles = PER_ORDER * n_orders
    step = 2 * np.pi / angles
    place = phi / step
    first = np.ceil(place - terms / 2).astype(np.int64)
    # distance of each angle from the pixel, from -1 to 1 in the window
    distance = (first[:, np.newaxis] + np.arange(terms) - place[:, np.newaxis]) / (terms / 2)
    weights = _window(distance, terms)
    # orders are divided by the Fourier transform of the window
    nodes, parts = np.polynomial.legendre.leggauss(64)
    cosines = np.cos(np.outer(orders, nodes) * (step * terms / 2))
    transform = cosines @ (parts * _window(nodes, terms)) * (terms / 2)
    waves = np.exp(1j * orders * step * np.arange(angles)[:, np.newaxis]) / transform
    return SharedAngles(first % angles, weights.astype(real), waves.view(np.float64))


def _window(distance: AnyArray, terms: int) -> AnyArray:
    """Return the weight at distances from -1 to 1.

    It is almost a Kaiser-Bessel window, which takes 15 times as long to compute (Barnett, Magland
    and af Klinteberg 2019, doi:10.1137/18M120885X).
    """
    steepness = 0.98 * np.pi * terms * (1 - 1 / PER_ORDER)
    weight: AnyArray = np.exp(steepness * (np.sqrt(np.maximum(1 - distance**2, 0)) - 1))
    return weight
