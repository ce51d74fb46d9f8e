"""UDFs with a halo for tests, and what they must give: computed from the whole padded scan."""

import numpy as np

from udfdask import UDF

MODES = {"mask": "constant", "nearest": "edge", "reflect": "symmetric", "periodic": "wrap"}
"""How NumPy pads an array as each boundary does."""


class WindowsUDF(UDF):
    """Weighted sums over the window of each position, its mask and coordinates; a sum of all."""

    def __init__(self, halo=1, boundary="mask", outside=True, weights=None):
        super().__init__(halo=halo, boundary=boundary, outside=outside, weights=weights)
        self.halo, self.boundary, self.neighbors_outside_roi = halo, boundary, outside

    def get_preferred_input_dtype(self):
        return np.float64

    def get_result_buffers(self):
        nav_dims = self.meta.dataset_shape.nav.dims
        return {
            "weighted": self.buffer(kind="nav", dtype="float64"),
            "present": self.buffer(kind="nav", dtype="int64"),
            "position": self.buffer(kind="nav", extra_shape=(nav_dims,), dtype="int64"),
            "total": self.buffer(kind="sig", dtype="float64"),
        }

    def process_neighborhood(self, frames):
        mask = self.meta.neighbor_mask
        assert frames.shape[: mask.ndim] == mask.shape
        self.results.weighted[:] = weighted(frames, mask.ndim, self.params.weights)
        self.results.present[:] = mask.sum()
        self.results.position[:] = self.meta.coordinates[0]
        self.results.total += frames.sum(axis=tuple(range(mask.ndim)))

    def merge(self, dest, src):
        for name in ("weighted", "present", "position"):
            getattr(dest, name)[:] = getattr(src, name)
        dest.total += src.total


class PartitionsUDF(WindowsUDF):
    """The same, for the positions of a part of a chunk at a time."""

    process_neighborhood = None

    def get_method(self):
        return self.UDF_METHOD.PARTITION

    def process_partition(self, frames):
        core, mask, chosen = self.meta.core, self.meta.neighbor_mask, self.meta.core_mask
        nav = len(core)
        assert frames.shape[:nav] == mask.shape
        assert chosen.shape == tuple(c.stop - c.start for c in core)
        coordinates = iter(self.meta.coordinates)
        for place in np.argwhere(chosen):
            window = tuple(
                slice(p, p + c.start + 1 + n - c.stop)
                for p, c, n in zip(place, core, mask.shape, strict=True)
            )
            here, aux = tuple(place), self.params.weights
            aux = aux if aux is None else aux[window]
            self.results.weighted[here] = weighted(frames[window], nav, aux)
            self.results.present[here] = mask[window].sum()
            self.results.position[here] = next(coordinates)
            self.results.total += frames[window].sum(axis=tuple(range(nav)))


def weighted(frames, nav_dims, values=None):
    sums = frames.sum(axis=tuple(range(nav_dims, frames.ndim)))
    weights = np.arange(1, sums.size + 1).reshape(sums.shape)
    return float((sums * weights * (1 if values is None else values)).sum())


def expected(data, nav_dims, sides, boundary, roi=None, outside=True, values=None, present=None):
    """The results over the whole scan, from an array that NumPy has padded; 0 outside of `roi`."""
    nav = data.shape[:nav_dims]
    chosen = np.ones(nav, bool) if roi is None else roi
    if present is None:
        present = np.ones(nav, bool) if outside else chosen
    seen = np.where(present.reshape(nav + (1,) * (data.ndim - nav_dims)), data, 0).astype(float)

    def pad(array):
        more = [(0, 0)] * (array.ndim - nav_dims)
        return np.pad(array, [*sides, *more], mode=MODES[boundary])

    frames, mask = pad(seen), pad(present)
    extra = None if values is None else pad(values)
    weighted_sums, counts = np.full(nav, np.nan), np.zeros(nav, int)
    total = np.zeros(data.shape[nav_dims:])
    for place in np.argwhere(chosen):
        window = tuple(slice(p, p + a + 1 + b) for p, (a, b) in zip(place, sides, strict=True))
        here = None if extra is None else extra[window]
        weighted_sums[tuple(place)] = weighted(frames[window], nav_dims, here)
        counts[tuple(place)] = mask[window].sum()
        total += frames[window].sum(axis=tuple(range(nav_dims)))
    return {"weighted": weighted_sums, "present": counts, "total": total}
