"""The choice of backends, compared with a search over all sets of backends."""

import copy
import itertools
import pickle

import pytest
import sparseconverter
from hypothesis import given
from hypothesis import strategies as st

from udfdask.backends import table as choosing
from udfdask.backends.backend import CUDA, CUPY, NUMPY
from udfdask.backends.matrix_backends import SCIPY_CSC, SCIPY_CSR
from udfdask.backends.pydata_backends import COO, GCXS
from udfdask.backends.table import BACKENDS, choose_backends
from udfdask.names.naming import tokenize_value

NATIVES = [one for one in BACKENDS if one != CUDA]  # what arrays are made of
natives = st.sampled_from(NATIVES)
few_offers = st.lists(st.sampled_from(BACKENDS), min_size=1, max_size=4, unique=True)
offers = st.lists(few_offers.map(tuple), min_size=1, max_size=4)


def changes_device(native, name):
    return native.device != name.device


def makes_dense(native, name):
    return native.is_sparse and not name.is_sparse


def cost(native, chosen):
    """Return the cost of converting to each of the chosen backends once."""
    others = set(chosen) - {native}
    return sum(sparseconverter.conversion_cost(native.name, one.name) for one in others)


def near(native, offer):
    """Return the backends of an offer without those that are farther away than others."""
    for is_far in (changes_device, makes_dense):
        offer = [n for n in offer if not is_far(native, n)] or offer
    return offer


@given(natives, offers)
def test_every_offer_is_served_natively_if_it_can_be(native, offers):
    chosen = choose_backends(native, offers, corrected=False)
    assert len(chosen) == len(offers)
    for name, offer in zip(chosen, offers, strict=True):
        assert name in offer
        assert name == native or native not in offer


@given(natives, offers)
def test_nothing_is_cheaper(native, offers):
    chosen = choose_backends(native, offers, corrected=False)
    wanting = [near(native, offer) for offer in offers if native not in offer]
    least = min(cost(native, names_) for names_ in itertools.product(*wanting))
    assert cost(native, chosen) == pytest.approx(least)


@given(natives, few_offers)
def test_one_alone(native, offer):
    """A single UDF gets its cheapest near backend; ties: no device, then its preference."""
    (chosen,) = choose_backends(native, [tuple(offer)], corrected=False)
    candidates = [native] if native in offer else near(native, offer)
    best = min(candidates, key=lambda n: (cost(native, [n]), n.device != "cpu", offer.index(n)))
    assert chosen == best


@given(natives, offers, st.randoms())
def test_the_order_of_udfs_decides_nothing_but_ties(native, offers, random):
    order = list(range(len(offers)))
    random.shuffle(order)
    chosen = choose_backends(native, offers, corrected=False)
    again = choose_backends(native, [offers[k] for k in order], corrected=False)
    assert cost(native, chosen) == pytest.approx(cost(native, again))
    for k, name in zip(order, again, strict=True):
        assert changes_device(native, name) == changes_device(native, chosen[k])
        assert makes_dense(native, name) == makes_dense(native, chosen[k])


@given(natives, offers)
def test_corrected_data_are_dense(native, offers):
    side = CUPY if native.on_device else NUMPY
    assert choose_backends(native, offers, corrected=True) == choose_backends(
        side, offers, corrected=False
    )


def test_a_process_has_one_value_for_each_backend():
    assert pickle.loads(pickle.dumps(BACKENDS)) == BACKENDS == copy.deepcopy(BACKENDS)
    assert len(set(map(tokenize_value, BACKENDS))) == len(BACKENDS)


def test_the_more_popular_of_equally_cheap_ones(monkeypatch):
    """Each UDF counts, even if several offer the same; then a backend without a device wins."""
    monkeypatch.setattr(choosing, "_cost", lambda native, name: 1.0)
    monkeypatch.setattr(choosing, "_choose", choosing._choose.__wrapped__)  # not cached
    coo, csr, csc, gcxs = COO, SCIPY_CSR, SCIPY_CSC, GCXS

    def choose(*offers):
        return choose_backends(gcxs, offers, corrected=False)

    assert choose((coo, csr), (csr,), (csr,)) == (csr, csr, csr)
    assert choose((coo, csr), (coo, csr), (csc, csr)) == (csr, csr, csr)
    assert choose((coo, csr), (csr, coo)) == (coo, coo)
    # three UDFs offer csr, one csc: two backends are needed in any case
    assert choose((coo,), (csc, csr), (csr, csc), (csr,)) == (coo, csr, csr, csr)
    assert choose_backends(CUPY, [(CUDA,)], corrected=False) == (CUDA,)
