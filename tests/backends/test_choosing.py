"""The choice of backends: native, near, cheap, preferred."""

import copy
import pickle

import sparseconverter
from hypothesis import given
from hypothesis import strategies as st

from udfdask.backends.backend import CUDA, CUPY, NUMPY
from udfdask.backends.table import BACKENDS, choose_backends
from udfdask.base.names.naming import tokenize_value

natives = st.sampled_from([one for one in BACKENDS if one != CUDA])  # what arrays are made of
few_offers = st.lists(st.sampled_from(BACKENDS), min_size=1, max_size=4, unique=True)
offers = st.lists(few_offers.map(tuple), min_size=1, max_size=4)


def near(native, offer):
    """Return the backends of an offer without those that are farther away than others."""
    offer = [n for n in offer if n.device == native.device] or offer
    return [n for n in offer if n.is_sparse] or offer if native.is_sparse else offer


@given(natives, offers)
def test_native_then_near_then_cheap_then_preferred(native, offers):
    chosen = choose_backends(native, offers, corrected=False)
    for one, offer in zip(chosen, offers, strict=True):
        candidates = [native] if native in offer else near(native, offer)
        costs = [sparseconverter.conversion_cost(native.name, n.name) for n in candidates]
        assert one == candidates[costs.index(min(costs))]


@given(natives, offers)
def test_corrected_data_are_dense(native, offers):
    side = CUPY if native.on_device else NUMPY
    assert choose_backends(native, offers, corrected=True) == choose_backends(
        side, offers, corrected=False
    )


def test_a_process_has_one_value_for_each_backend():
    assert pickle.loads(pickle.dumps(BACKENDS)) == BACKENDS == copy.deepcopy(BACKENDS)
    assert len(set(map(tokenize_value, BACKENDS))) == len(BACKENDS)
