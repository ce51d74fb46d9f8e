"""Simulated diffraction patterns whose center is known."""

import numpy as np

FAMILIES = ("zone axis", "tilted", "off-center", "beam stop", "rings", "saturated")
N = 128


def make_pattern(family, seed):
    """Return counts, shape (128, 128), and the center (y, x)."""
    rng = np.random.default_rng([FAMILIES.index(family), seed])
    y, x = np.mgrid[:N, :N]
    middle = np.full(2, (N - 1) / 2)
    center = middle + rng.uniform(-N / 12, N / 12, 2)
    if family == "off-center":  # up to a quarter of the frame
        center = middle + rng.uniform(N / 8, N / 4, 2) * rng.choice([-1, 1], 2)
    radius = rng.uniform(3, 6)
    d = np.hypot(y - center[0], x - center[1])
    image = 0.02 * np.exp(-d / (0.12 * N)) + 0.002 * np.exp(-((d / (0.35 * N)) ** 2))  # amorphous

    def disk(at):
        return np.clip(radius + 0.5 - np.hypot(y - at[0], x - at[1]), 0, 1)

    if family == "rings":
        q, angle = rng.uniform(10, 15), rng.uniform(0, 2 * np.pi)
        for k, strength in zip((1, 1.155, 1.633, 1.915, 2), (10, 5, 4, 5, 1), strict=True):
            image += 0.004 * strength * np.exp(-(((d - q * k) / 1.5) ** 2))
        grain = center + q * np.array([np.sin(angle), np.cos(angle)])
        image += disk(center) + rng.uniform(0.5, 2) * disk(grain)
    else:
        image += _reflections(rng, center, disk, tilted=family == "tilted")
    total = np.exp(rng.uniform(np.log(2e4), np.log(2e6)))
    counts = rng.poisson(image / image.sum() * total).astype(float)
    if family == "saturated":
        counts = np.minimum(counts, np.quantile(counts, 0.985))
    if family == "beam stop":
        angle = rng.uniform(0, 2 * np.pi)
        sine, cosine = np.sin(angle), np.cos(angle)
        along = (y - center[0]) * sine + (x - center[1]) * cosine
        across = (y - center[0]) * cosine - (x - center[1]) * sine
        counts[(d < radius + 2) | ((np.abs(across) < 3) & (along > 0))] = 0
    return counts, center


def _reflections(rng, center, disk, *, tilted):
    """Return the beam and the reflections of a lattice, bright near the Laue circle."""
    angle = rng.uniform(0, np.pi)
    between, size = rng.uniform(np.pi / 3, 2 * np.pi / 3), rng.uniform(13, 24)
    lattice = size * np.array([[np.sin(a), np.cos(a)] for a in (angle, angle + between)])
    lattice[1] *= rng.uniform(0.9, 1.4)
    tilt = rng.uniform(15, 40) if tilted else rng.uniform(0, 12)
    toward, width = rng.uniform(0, 2 * np.pi), rng.uniform(3, 6)
    laue = tilt * np.array([np.sin(toward), np.cos(toward)])
    brightest = rng.uniform(1, 3) if tilted else rng.uniform(0.2, 0.8)  # the beam is 1
    spots = []
    for order in np.ndindex(19, 19):
        place = (np.array(order) - 9) @ lattice
        far = np.hypot(*place)
        if 0 < far < 0.7 * N:
            miss = (np.hypot(*(place - laue)) - tilt) / width
            strength = np.exp(-0.5 * miss**2 - (far / (0.25 * N)) ** 2) * rng.uniform(0.3, 1)
            spots.append((strength, center + place))
    top = max(strength for strength, _ in spots)
    strong = [(s / top * brightest, place) for s, place in spots if s > 1e-3 * top]
    return disk(center) + sum(s * disk(place) for s, place in strong)
