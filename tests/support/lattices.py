"""Positions of the disks of simulated crystals, and what is known about them."""

import numpy as np

LATTICE = np.array([(16.4, 2.8), (-3.6, 17.2)])
"""Vectors (y, x) in pixels."""


def orders(reach=2):
    return np.array([(h, k) for h in range(-reach, reach + 1) for k in range(-reach, reach + 1)])


def disks(lattices, noise=0.0, missing=0.0, false=0.0, reach=2, seed=0):
    """Positions in frames with these vectors, shape (frames, n, 2), in any order; and origins.

    The beam moves by 2 pixels; `missing` and `false` are parts of the number of disks.
    """
    rng = np.random.default_rng(seed)
    frames, n = len(lattices), len(orders(reach))
    origins = np.add((60, 64), rng.uniform(-2, 2, (frames, 2)))
    found = origins[:, None] + orders(reach) @ lattices
    found += rng.normal(0, noise, found.shape) if noise else 0
    found[rng.random((frames, n)) < missing] = np.nan
    wrong = rng.uniform(0, 120, (frames, round(false * n), 2))
    every = np.concatenate([found, wrong], axis=1)
    mixed = rng.permuted(np.tile(np.arange(every.shape[1]), (frames, 1)), axis=1)
    return np.take_along_axis(every, mixed[..., None], axis=1), origins


def strained(frames, size=0.02, seed=1):
    """Vectors of lattices with random strain, shape (frames, 2, 2)."""
    return LATTICE @ (np.eye(2) + np.random.default_rng(seed).uniform(-size, size, (frames, 2, 2)))


def rotated(lattice, radians):
    """The lattice turned from x to y."""
    cos, sin = np.cos(radians), np.sin(radians)
    return lattice @ np.array([[cos, sin], [-sin, cos]]).T
