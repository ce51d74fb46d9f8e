"""Members of radial bins: what a sparse stack holds, cut to windows."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from udfdask.masks import radial_bins
from udfdask.masks.bins import find_members

CASE = st.tuples(
    st.tuples(st.floats(-3, 12), st.floats(-3, 12)),
    st.tuples(st.integers(1, 9), st.integers(1, 9)),
    st.floats(0.5, 8),
    st.sampled_from([0, 0.3, 2.5]),
    st.integers(1, 5),
)


def dense(members, origin, shape):
    """The stack that members of a window make."""
    stack = np.zeros((len(members.bounds) - 1, *shape))
    for b, (start, stop) in enumerate(zip(members.bounds[:-1], members.bounds[1:], strict=True)):
        y, x = members.y[start:stop] - origin[0], members.x[start:stop] - origin[1]
        stack[b, y, x] = members.weight[start:stop]
    return stack


@given(CASE, st.data())
@settings(deadline=None)
def test_members_are_those_of_the_stack(case, data):
    (cy, cx), (ny, nx), thickness, ri, n_bins = case
    members = find_members((cy, cx), (ny, nx), ri + thickness, ri, n_bins)
    rings = {"radius": ri + thickness, "radius_inner": ri, "n_bins": n_bins}
    stack = radial_bins(cx, cy, nx, ny, **rings, use_sparse=False)
    np.testing.assert_array_equal(dense(members, (0, 0), (ny, nx)), stack)
    np.testing.assert_allclose(members.totals, stack.sum(axis=(1, 2)), rtol=1e-12)
    assert (members.weight > 0).all()
    oy, ox = data.draw(st.integers(0, ny)), data.draw(st.integers(0, nx))
    window = data.draw(st.integers(0, ny - oy)), data.draw(st.integers(0, nx - ox))
    part = stack[:, oy : oy + window[0], ox : ox + window[1]]
    np.testing.assert_array_equal(dense(members.within((oy, ox), window), (oy, ox), window), part)
