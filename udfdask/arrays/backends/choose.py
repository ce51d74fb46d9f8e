"""Which backend each UDF of a run is given: as little conversion as there can be, for all together.

The choice follows from the backends alone, so that it is the same wherever it is made.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import lru_cache

from udfdask.arrays.backends.backend import Backend
from udfdask.arrays.backends.converter import converter
from udfdask.arrays.backends.dense_backends import NUMPY

Offer = tuple[Backend, ...]
"""The backends that a UDF may be given, preferred first."""


def choose_backends(native: Backend, offers: Sequence[Offer], *, corrected: bool) -> Offer:
    """Return the backend that each UDF is given, from that of the data and from what each offers.

    The backend of the data itself comes first. Else a UDF is given one on the side of the data,
    host or device, and of sparse data a sparse one, if it offers any such. Among those, the
    cheapest set of backends that serves all UDFs counts: one conversion serves every UDF that is
    given its outcome. Of equally cheap ones the one that more UDFs offer is taken, then the one
    that needs no device, then the one that the first UDF prefers.

    Corrected data are dense, so there the dense backend stands in for that of the data.
    """
    return _choose(native.dense if corrected else native, tuple(offers))


@lru_cache(maxsize=1024)
def _choose(native: Backend, offers: tuple[Offer, ...]) -> Offer:
    """Return the backend of each UDF."""
    wanting = [offer for offer in offers if native not in offer]
    narrowed = {offer: _nearest(native, offer) for offer in wanting}
    shared = _cheapest(native, [narrowed[offer] for offer in wanting]) if wanting else ()
    return tuple(
        native if native in offer else next(one for one in shared if one in narrowed[offer])
        for offer in offers
    )


def _nearest(native: Backend, offer: Offer) -> Offer:
    """Return those of an offer that neither change the device nor make sparse data dense."""
    far = [_distance(native, one) for one in offer]
    return tuple(one for one, way in zip(offer, far, strict=True) if way == min(far))


def _distance(native: Backend, one: Backend) -> tuple[int, int]:
    """Return whether a conversion changes the device, and whether it makes sparse data dense."""
    densifies = native.is_sparse and not one.is_sparse
    return int(native.device != one.device), int(densifies)


def _cheapest(native: Backend, offers: list[Offer]) -> Offer:
    """Return the backends that serve all offers at the lowest cost, cheap ones first."""
    candidates = list(dict.fromkeys(itertools.chain(*offers)))
    popular = {one: sum(one in offer for offer in offers) for one in candidates}
    # sorting is stable: preferences decide last
    candidates.sort(key=lambda one: (-popular[one], one.device != "cpu"))
    offers = list(dict.fromkeys(offers))
    if len(candidates) == 1:
        return tuple(candidates)
    cost = {one: _cost(native, one) for one in candidates}
    sets = (
        chosen
        for n in range(1, len(offers) + 1)
        for chosen in itertools.combinations(candidates, n)
        if all(any(one in chosen for one in offer) for offer in offers)
    )
    best = min(sets, key=lambda chosen: sum(cost[one] for one in chosen))
    return tuple(sorted(best, key=lambda one: cost[one]))


def _cost(native: Backend, one: Backend) -> float:
    """Return what a conversion costs, in the measure of `sparseconverter`."""
    ends = [end.name if end.is_in_converter else NUMPY.name for end in (native, one)]
    return float(converter("converting blocks").conversion_cost(*ends))
