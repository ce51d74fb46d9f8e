"""Law 8 for containers: same in, same name; anything else in, another name."""

from functools import partial

import numpy as np
import pytest
from dask.base import tokenize

from udfdask.masks import MaskContainer, circular, ring
from udfdask.names.naming import tokenize_value


def disc(radius=2, cx=3):
    return partial(circular, cx, 4, 5, 6, radius=radius)


def test_equal_containers_have_equal_tokens():
    made = [MaskContainer([disc(), lambda: np.ones((6, 5))], dtype="f4") for _ in range(2)]
    made[1].computed_masks  # noqa: B018  # nor does it matter what was computed
    assert len({tokenize_value(masks) for masks in made}) == 1
    assert tokenize_value(MaskContainer([disc()])) == tokenize_value(MaskContainer((disc(),)))
    assert tokenize(MaskContainer([disc()])) == tokenize(MaskContainer([disc()]))


CHANGES = {
    "radius": MaskContainer([disc(3)]),
    "position": MaskContainer([disc(cx=2)]),
    "function": MaskContainer([partial(ring, 3, 4, 5, 6, radius=2, radius_inner=1)]),
    "number": MaskContainer([disc(), disc()]),
    "stack": MaskContainer(disc()),
    "dtype": MaskContainer([disc()], dtype="float32"),
    "use_sparse": MaskContainer([disc()], use_sparse=False),
    "another use_sparse": MaskContainer([disc()], use_sparse="scipy.sparse.csc"),
    "count": MaskContainer([disc()], count=1),
    "default_sparse": MaskContainer([disc()], default_sparse="sparse.pydata"),
    "code": MaskContainer([lambda: np.zeros((6, 5))]),
    "a constant in the code": MaskContainer([lambda: np.zeros((6, 5)) + 1]),
}


@pytest.mark.parametrize("change", CHANGES)
def test_every_difference_is_in_the_token(change):
    others = [
        MaskContainer([disc()]),
        *(masks for name, masks in CHANGES.items() if name != change),
    ]
    assert tokenize_value(CHANGES[change]) not in {tokenize_value(masks) for masks in others}
