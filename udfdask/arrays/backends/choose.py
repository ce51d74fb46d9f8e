"""Choose the backend of each UDF of a run, so that all UDFs together need the fewest conversions.

The choice depends on the backends alone, so that the plan and every worker choose the same.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import lru_cache

from udfdask.arrays.backends.backend import Backend
from udfdask.arrays.backends.converter import converter
from udfdask.arrays.backends.dense_backends import NUMPY

Offer = tuple[Backend, ...]
"""The backends that a UDF supports, the preferred one first."""


def choose_backends(native: Backend, offers: Sequence[Offer], *, corrected: bool) -> Offer:
    """Return the backend of each UDF, from the backend of the data and the offers of the UDFs.

    1. A UDF that offers the backend of the data gets it, since that needs no conversion. A UDF
       that offers both NumPy and CuPy therefore gets NumPy over NumPy chunks: it may run on any
       worker, and gives the same bits on all of them.
    2. Otherwise it gets a backend on the same device, and a sparse one for sparse data, if it
       offers such a backend.
    3. Among these, the set of backends with the lowest total cost is used. A conversion is done
       once for all UDFs with the same backend.
    4. Of equally cheap sets: the backend that more UDFs offer, then one that needs no device, then
       the one that the first UDF prefers.

    Corrected data are dense: the dense backend in the same memory then takes the place of `native`.
    """
    return _choose(native.dense if corrected else native, tuple(offers))


@lru_cache(maxsize=1024)
def _choose(native: Backend, offers: tuple[Offer, ...]) -> Offer:
    """Return the backend of each UDF."""
    nearest = {offer: _nearest(native, offer) for offer in offers if native not in offer}
    # with repetitions: each UDF counts for the popularity of its backends
    shared = _cheapest(native, [nearest[offer] for offer in offers if offer in nearest])
    return tuple(
        next(backend for backend in shared if backend in nearest[offer])
        if offer in nearest
        else native
        for offer in offers
    )


def _nearest(native: Backend, offer: Offer) -> Offer:
    """Return the backends of an offer that change the device, or make data dense, least."""
    distances = [_distance(native, backend) for backend in offer]
    nearest = min(distances)
    return tuple(b for b, distance in zip(offer, distances, strict=True) if distance == nearest)


def _distance(native: Backend, backend: Backend) -> tuple[bool, bool]:
    """Return whether a conversion changes the device, and whether it makes sparse data dense."""
    return native.device != backend.device, native.is_sparse and not backend.is_sparse


def _cheapest(native: Backend, offers: list[Offer]) -> Offer:
    """Return the cheapest set of backends that has one of each offer, cheap backends first."""
    candidates = list(dict.fromkeys(itertools.chain(*offers)))
    if len(candidates) < 2:
        return tuple(candidates)
    popularity = {backend: sum(backend in offer for offer in offers) for backend in candidates}
    # sorting is stable: equal candidates keep the order of preference
    candidates.sort(key=lambda backend: (-popularity[backend], backend.device != "cpu"))
    offers = list(dict.fromkeys(offers))
    cost = {backend: _cost(native, backend) for backend in candidates}
    sets = (
        chosen
        for n in range(1, len(offers) + 1)
        for chosen in itertools.combinations(candidates, n)
        if all(any(backend in chosen for backend in offer) for offer in offers)
    )
    best = min(sets, key=lambda chosen: sum(cost[backend] for backend in chosen))
    return tuple(sorted(best, key=cost.__getitem__))


def _cost(native: Backend, target: Backend) -> float:
    """Return the cost of a conversion, as measured by the authors of `sparseconverter`."""
    ends = [end.name if end.is_in_converter else NUMPY.name for end in (native, target)]
    return float(converter("converting blocks").conversion_cost(*ends))
