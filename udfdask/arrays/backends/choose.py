"""Which backend each UDF of a run is given: as little conversion as there can be, for all together.

The choice follows from names alone, so that it is the same on every worker.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import lru_cache

from udfdask.arrays.backends import names
from udfdask.arrays.backends.detect import converter, dense, device_class

Offer = tuple[str, ...]
"""The backends that a UDF may be given, preferred first."""


def choose_backends(native: str, offers: Sequence[Offer], *, corrected: bool) -> tuple[str, ...]:
    """Return the backend that each UDF is given, from that of the data and from what each offers.

    The backend of the data itself comes first. Else a UDF is given one on the side of the data,
    host or device, and of sparse data a sparse one, if it offers any such. Among those, the
    cheapest set of backends that serves all UDFs counts: one conversion serves every UDF that is
    given its outcome. Of equally cheap ones the one that more UDFs offer is taken, then the one
    that needs no device, then the one that the first UDF prefers.

    Corrected data are dense, so there the dense backend stands in for that of the data.
    """
    return _choose(dense(native) if corrected else native, tuple(offers))


@lru_cache(maxsize=1024)
def _choose(native: str, offers: tuple[Offer, ...]) -> tuple[str, ...]:
    """Return the backend of each UDF."""
    wanting = [offer for offer in offers if native not in offer]
    narrowed = {offer: _nearest(native, offer) for offer in wanting}
    shared = _cheapest(native, [narrowed[offer] for offer in wanting]) if wanting else ()
    return tuple(
        native if native in offer else next(name for name in shared if name in narrowed[offer])
        for offer in offers
    )


def _nearest(native: str, offer: Offer) -> Offer:
    """Return those of an offer that neither change the device nor make sparse data dense."""
    near = [_far(native, name) for name in offer]
    return tuple(n for n, far in zip(offer, near, strict=True) if far == min(near))


def _far(native: str, name: str) -> tuple[int, int]:
    """Return whether a conversion changes the device, and whether it makes sparse data dense."""
    densifies = native in names.SPARSE_BACKENDS and name not in names.SPARSE_BACKENDS
    return int(device_class(native) != device_class(name)), int(densifies)


def _cheapest(native: str, offers: list[Offer]) -> Offer:
    """Return the backends that serve all offers at the lowest cost, cheap ones first."""
    candidates = list(dict.fromkeys(itertools.chain(*offers)))
    popular = {name: sum(name in offer for offer in offers) for name in candidates}
    # sorting is stable: preferences decide last
    candidates.sort(key=lambda name: (-popular[name], device_class(name) != "cpu"))
    offers = list(dict.fromkeys(offers))
    if len(candidates) == 1:
        return tuple(candidates)
    cost = {name: _cost(native, name) for name in candidates}
    sets = (
        chosen
        for n in range(1, len(offers) + 1)
        for chosen in itertools.combinations(candidates, n)
        if all(any(name in chosen for name in offer) for offer in offers)
    )
    best = min(sets, key=lambda chosen: sum(cost[name] for name in chosen))
    return tuple(sorted(best, key=lambda name: cost[name]))


def _cost(native: str, name: str) -> float:
    """Return what a conversion costs, in the measure of `sparseconverter`."""
    return float(converter("converting blocks").conversion_cost(native, name))
