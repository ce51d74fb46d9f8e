"""Fourier coefficients of each frame along concentric rings."""

from __future__ import annotations

from collections.abc import Mapping
from operator import index
from typing import TYPE_CHECKING, Any

import numpy as np

from udfdask.arrays.geometry.axes import Axis
from udfdask.cache import OncePerProcess
from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.kernels.cuda.ring_sums import add_ring_products
from udfdask.types import AnyArray
from udfdask.udf import UDF
from udfdask.udf.buffers import BufferSpec
from udfdask.udf.promises import Promises
from udfdask.udfs.shared.frame_geometry import (
    centre_of,
    check_rings,
    check_rings_reach,
    two_axes,
)
from udfdask.udfs.shared.kernel_backends import dense_backends

if TYPE_CHECKING:
    from udfdask.masks.ring_members import BinMembers


PIECE = 1 << 12
"""Pixels of a ring that are multiplied at a time: BLAS adds them up one after another, so that
rounding errors grow with their number. They also stay in the cache."""


class RadialFourierUDF(UDF):
    """Expand each frame along concentric rings into a Fourier series: for symmetry and strain.

    Parameters
    ----------
    cy, cx : float, optional
        Centre of the rings, in pixels; by default ``shape // 2``.
    r : float, optional
        Outer radius of the last ring, in pixels; by default the rings cover the whole frame.
    ri : float
        Inner radius of the first ring, in pixels.
    n_bins : int
        Number of rings of equal width.
    max_order : int
        Highest order, 0 or more.

    Raises
    ------
    ArgumentTypeError
        If a parameter is of another type; in `run_udf` if the data are not real.
    ArgumentValueError
        If a radius or `max_order` is negative, `ri` is not smaller than `r`, `n_bins` is not
        positive, or a number is not finite; in `run_udf` if the frames are not 2-D, or all rings
        lie outside of the frame.

    Notes
    -----
    Buffer `coefficients`, kind nav, shape (*nav, n_bins * (max_order + 1)), complex64: for each
    ring b the orders n = 0 ... max_order, ``sum I w_b exp(i n phi)``, not normalised. The angle
    phi is zero along +x and grows towards +y; the weights `w_b` are those of
    `udfdask.masks.radial_bins`. ``c.reshape((*nav, n_bins, max_order + 1))`` has an axis for each,
    and ``abs(c[..., n]) / abs(c[..., 0])`` is the strength of the n-fold symmetry.

    It computes in float32, or float64 for data that need it, and adds up in float64. Each process
    holds ``8 * (max_order + 1)`` bytes for each pixel of each ring, twice that in float64.

    Examples
    --------
    >>> import dask.array as da, numpy as np, udfdask as ud
    >>> from udfdask.udfs import RadialFourierUDF
    >>> y, x = np.mgrid[-8:9, -8:9]
    >>> frames = np.tile(1 + np.cos(2 * np.arctan2(y, x)), (2, 3, 1, 1))  # two-fold
    >>> udf = RadialFourierUDF(r=6, ri=2, max_order=4)
    >>> c = ud.run_udf(da.from_array(frames, chunks=(1, 3, 17, 17)), udf)["coefficients"]
    >>> strength = abs(c[0, 0]).compute()
    >>> print((strength / strength[0]).round(2))
    [1.  0.  0.5 0.  0. ]
    """

    promises = Promises(adds_signal_parts=True, declares_once=True)

    def __init__(
        self,
        cy: float | None = None,
        cx: float | None = None,
        r: float | None = None,
        ri: float = 0.0,
        n_bins: int = 1,
        max_order: int = 24,
    ) -> None:
        check_rings(cy, cx, r, ri, n_bins)
        for name, value in (("n_bins", n_bins), ("max_order", max_order)):
            try:
                index(value)
            except TypeError:
                raise ArgumentTypeError(f"{name} must be an integer, not {value!r}") from None
        if max_order < 0:
            raise ArgumentValueError(f"max_order must be 0 or more, not {max_order!r}")
        super().__init__(cy=cy, cx=cx, r=r, ri=ri, n_bins=n_bins, max_order=max_order)

    def get_backends(self) -> Any:
        """Return NumPy and CuPy."""
        return dense_backends(self, RadialFourierUDF)

    def get_result_buffers(self) -> Mapping[str, BufferSpec]:
        """Declare the coefficients."""
        two_axes(self)
        check_rings_reach(self, self.params.r, self.params.ri)
        number = self.params.n_bins * (self.params.max_order + 1)
        return {
            "coefficients": self.buffer(
                kind="nav", extra_shape=(number,), dtype="complex64", where="device"
            )
        }

    def get_result_axes(self) -> Mapping[str, tuple[Axis, ...]]:
        """Return the axis of rings and orders."""
        p = self.params
        labels = tuple(
            f"bin {b} order {n}" for b in range(p.n_bins) for n in range(p.max_order + 1)
        )
        return {"coefficients": (Axis(name="bin_order", labels=labels),)}

    def get_shared_task_data(self) -> Mapping[str, Any]:
        """Return the pixels of each ring, and room for what is made of them for each tile."""
        from udfdask.masks import bounding_radius
        from udfdask.masks.ring_members import find_members

        cy, cx = centre_of(self)
        ny, nx = sig = two_axes(self)
        p = self.params
        r = bounding_radius(cx, cy, nx, ny) if p.r is None else p.r
        members = find_members((cy, cx), sig, r, p.ri, p.n_bins)
        return {"members": members, "waves": OncePerProcess(2048)}

    def process_tile(self, tile: Any) -> None:
        """Add the part of each frame to its coefficients."""
        origin, shape = self.meta.sig_slice.origin, tile.shape[1:]
        real = np.float64 if tile.dtype.itemsize > 4 else np.float32
        data, n_orders = self.task_data, self.params.max_order + 1
        on_device = self.meta._backend.on_device

        def make() -> list[tuple[Any, Any]]:
            made = _waves(data.members, centre_of(self), origin, shape, n_orders, real)
            share = self.meta._backend.dense.share
            return [(share(pixels), share(waves)) for pixels, waves in made]

        waves = data.waves.get((origin, shape), make)
        pixels = tile.reshape(tile.shape[0], -1)
        found = self.results.coefficients
        if on_device:
            sums = self.xp.zeros((len(tile), self.params.n_bins, 2 * n_orders))
            add_ring_products(pixels, waves, sums)
            found += sums.view(np.complex128).reshape(found.shape)
            return
        for b, (places, wave) in enumerate(waves):
            if len(places):
                # as a real product: the data have no imaginary part to multiply
                sums = np.zeros((len(pixels), 2 * n_orders))
                for start in range(0, len(places), PIECE):
                    some = slice(start, start + PIECE)
                    sums += (
                        np.take(pixels, places[some], axis=1).astype(real, copy=False) @ wave[some]
                    )
                found[:, b * n_orders : (b + 1) * n_orders] += sums.view(np.complex128)


def _waves(
    members: BinMembers,
    centre: tuple[float, float],
    origin: tuple[int, ...],
    shape: tuple[int, ...],
    n_orders: int,
    real: type[np.floating[Any]],
) -> list[tuple[AnyArray, AnyArray]]:
    """Return for each ring where its pixels lie in a window, and what to multiply them with.

    The latter is ``w * exp(i n phi)`` for each order, real and imaginary part beside each other,
    shape (pixels, 2 * orders).
    """
    here = members.within(origin, shape)
    places = (here.y - origin[0]) * shape[1] + here.x - origin[1]
    phi = np.arctan2(here.y - centre[0], here.x - centre[1])
    turn = np.exp(1j * phi)
    # one order from the last: ten times as fast as an exponential for each
    wave = np.empty((len(phi), n_orders), dtype=np.complex128)
    wave[:, 0] = here.weight
    for n in range(1, n_orders):
        np.multiply(wave[:, n - 1], turn, out=wave[:, n])
    both = wave.view(np.float64).astype(real)
    return [
        (places[start:stop], both[start:stop])
        for start, stop in zip(here.bounds[:-1], here.bounds[1:], strict=True)
    ]
