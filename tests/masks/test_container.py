"""MaskContainer: formats, cutting, checks."""

import sys
from functools import partial

import cloudpickle
import numpy as np
import pytest
import scipy.sparse as sp
import sparse
from dask.base import tokenize
from hypothesis import given, settings
from hypothesis import strategies as st

from suites import examples
from udfdask import ArgumentTypeError, ArgumentValueError, Shape, Slice
from udfdask.base.names.naming import tokenize_value
from udfdask.masks import MaskContainer, circular, gradient_x

RNG = np.random.default_rng(5)
SIG = (6, 7)
STACK = np.where(RNG.random((4, *SIG)) < 0.3, RNG.integers(-9, 9, (4, *SIG)), 0).astype("float64")

FORMATS = {
    False: np.ndarray,
    True: sp.csr_matrix,
    "scipy.sparse": sp.csr_matrix,
    "scipy.sparse.csr": sp.csr_matrix,
    "scipy.sparse.csc": sp.csc_matrix,
    "sparse.pydata": sparse.COO,
    "sparse.pydata.GCXS": sparse.GCXS,
}

SOURCES = {
    "dense stack": lambda: STACK,
    "COO stack": lambda: sparse.COO.from_numpy(STACK),
    "dense masks": [partial(STACK.__getitem__, i) for i in range(4)],
    "COO masks": [partial(lambda i: sparse.COO.from_numpy(STACK[i]), i) for i in range(4)],
    "CSR masks": [partial(lambda i: sp.csr_matrix(STACK[i]), i) for i in range(4)],
    "mixed masks": [
        lambda: STACK[0],
        lambda: sparse.DOK.from_numpy(STACK[1]),
        lambda: sp.coo_matrix(STACK[2]),
        lambda: STACK[3],
    ],
}


def piece(origin, shape, nav=3):
    return Slice(origin=(0, *origin), shape=Shape((nav, *shape), sig_dims=len(shape)))


WHOLE = piece((0, 0), SIG)


def dense(matrix):
    if hasattr(matrix, "toarray"):
        return matrix.toarray()
    return matrix.todense() if hasattr(matrix, "todense") else matrix


@st.composite
def pieces(draw, sig=SIG):
    origin = [draw(st.integers(0, n)) for n in sig]
    return piece(origin, [draw(st.integers(0, n - o)) for n, o in zip(sig, origin, strict=True)])


@pytest.mark.parametrize("wanted", FORMATS)
@pytest.mark.parametrize("source", SOURCES)
class TestFormats:
    @pytest.mark.full
    @given(key=pieces(), transpose=st.booleans(), dtype=st.sampled_from([None, "float32", "int16"]))
    @settings(max_examples=examples(15), deadline=None)
    def test_same_numbers_in_every_format(self, source, wanted, key, transpose, dtype):
        masks = MaskContainer(SOURCES[source], use_sparse=wanted)
        got = masks.get(key, transpose=transpose, dtype=dtype)
        assert type(got) is FORMATS[wanted]
        want = STACK[(slice(None), *key.get(sig_only=True))].reshape(4, key.shape.sig.size)
        want = (want.T if transpose else want).astype(dtype or "float64")
        assert got.shape == want.shape
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(dense(got), want)


class TestChoices:
    @pytest.mark.parametrize("wanted", FORMATS)
    def test_a_format_for_one_call(self, wanted):
        got = MaskContainer(SOURCES["mixed masks"]).get(WHOLE, sparse_backend=wanted)
        assert type(got) is FORMATS[wanted]
        np.testing.assert_array_equal(dense(got), STACK.reshape(4, -1).T)

    @pytest.mark.parametrize(
        ("source", "chosen"),
        [
            ("dense stack", False),
            ("dense masks", False),
            ("mixed masks", False),
            ("COO stack", "scipy.sparse.csc"),
            ("CSR masks", "scipy.sparse.csc"),
        ],
    )
    def test_sparse_if_all_masks_are(self, source, chosen):
        masks = MaskContainer(SOURCES[source], default_sparse="scipy.sparse.csc")
        assert masks.use_sparse == chosen
        assert isinstance(masks.computed_masks, sparse.COO if chosen else np.ndarray)
        np.testing.assert_array_equal(dense(masks.computed_masks), STACK)
        assert type(masks.get(WHOLE)) is FORMATS[chosen]

    def test_a_choice_is_known_without_computing(self):
        def fail():
            raise AssertionError("computed")

        assert MaskContainer(fail, use_sparse=True).use_sparse == "scipy.sparse"
        assert MaskContainer(fail, use_sparse=False).use_sparse is False
        assert MaskContainer(fail, dtype="f4").dtype == np.float32
        assert len(MaskContainer(fail, count=7)) == 7
        assert len(MaskContainer([fail, fail])) == 2
        assert repr(MaskContainer(fail, dtype="f4")) == (
            "MaskContainer(a stack, dtype=float32, use_sparse=None)"
        )

    def test_length_and_dtype_of_what_is_computed(self):
        masks = MaskContainer(lambda: STACK.astype("float32"))
        assert (len(masks), masks.dtype) == (4, np.float32)
        mixed = [lambda: circular(2, 2, 5, 5, 1), lambda: gradient_x(5, 5)]
        assert MaskContainer(mixed).dtype == np.float32

    def test_a_fill_value_counts_as_dense(self):
        ones = sparse.COO.from_numpy(STACK) + 1
        assert ones.fill_value == 1
        masks = MaskContainer(lambda: ones, use_sparse=True)
        np.testing.assert_array_equal(dense(masks.get(WHOLE)), STACK.reshape(4, -1).T + 1)


class TestPieces:
    @pytest.mark.parametrize("sig", [(11,), (5, 6), (3, 4, 5), (2, 3, 2, 2)])
    @pytest.mark.parametrize("use_sparse", [False, "scipy.sparse.csr", "sparse.pydata"])
    def test_tiles_add_up_to_the_whole(self, sig, use_sparse):
        stack = RNG.integers(0, 3, (3, *sig)).astype("float64")
        frame = RNG.random(sig)
        masks = MaskContainer(lambda: stack, use_sparse=use_sparse)
        cut = [sorted({0, n // 2, n}) for n in sig]
        total = np.zeros(3)
        for corner in np.ndindex(*(len(c) - 1 for c in cut)):
            origin = [c[i] for c, i in zip(cut, corner, strict=True)]
            shape = [c[i + 1] - c[i] for c, i in zip(cut, corner, strict=True)]
            key = piece(origin, shape)
            tile = frame[key.get(sig_only=True)].reshape(1, -1)
            total += np.ravel(dense(tile @ masks.get(key)))
        np.testing.assert_allclose(total, (stack * frame).reshape(3, -1).sum(axis=1))

    def test_the_navigation_part_does_not_matter(self):
        masks = MaskContainer(lambda: STACK)
        tile = Slice((5, 2, 1), Shape((9, 2, 3), sig_dims=2))
        scattered = Slice((5, 2, 1), Shape((2, 2, 3), sig_dims=2), rows=np.array([5, 8]))
        several = Slice((0, 0, 1, 2, 1), Shape((1, 1, 4, 2, 3), sig_dims=2))
        first = masks.get(tile)
        for key in (scattered, several, tile.sig, tile.discard_nav()):
            assert masks.get(key) is first
            assert masks.get_for_sig_slice(key) is first
        assert masks.get_for_sig_slice(tile.sig, transpose=False).shape == (4, 6)

    @pytest.mark.parametrize("transpose", [True, False])
    @pytest.mark.parametrize("source", ["dense stack", "COO stack"])
    def test_dense_ones_are_contiguous_and_read_only(self, source, transpose):
        masks = MaskContainer(SOURCES[source], use_sparse=False)
        for key in (WHOLE, piece((1, 2), (3, 3)), piece((0, 0), (1, 1))):
            got = masks.get(key, transpose=transpose)
            assert got.flags.c_contiguous
            with pytest.raises(ValueError, match="read-only"):
                got[...] = 0
        with pytest.raises(ValueError, match="read-only"):
            masks.computed_masks[...] = 0

    def test_the_factory_s_own_array_stays_writable_and_apart(self):
        mine = np.ones((2, *SIG))
        masks = MaskContainer(lambda: mine)
        before = masks.get(WHOLE, transpose=False)
        mine[:] = 5
        assert before.sum() == 2 * 6 * 7
        # another container sees other content, and makes its masks from that
        assert MaskContainer(lambda: mine).get(WHOLE).sum() == 10 * 6 * 7


def test_options_travel_and_masks_do_not():
    masks = MaskContainer(
        [partial(circular, 300, 300, 600, 600, 9), lambda: gradient_x(600, 600)],
        dtype="float32",
        use_sparse="scipy.sparse.csc",
        count=2,
        default_sparse="sparse.pydata",
    )
    masks.get(piece((0, 0), (600, 600)))
    data = cloudpickle.dumps(masks)
    assert len(data) < 3000
    again = cloudpickle.loads(data)
    assert (again.dtype, again.use_sparse, again.count) == ("float32", "scipy.sparse.csc", 2)
    assert again.default_sparse == "sparse.pydata"
    key = piece((298, 298), (5, 5))
    np.testing.assert_array_equal(dense(again.get(key)), dense(masks.get(key)))


def stack(shape):
    return lambda: np.ones(shape)


@pytest.mark.parametrize(
    ("given", "options", "error"),
    [
        (STACK, {}, ArgumentTypeError),
        ([stack((2, 2)), 3], {}, ArgumentTypeError),
        ([], {}, ArgumentValueError),
        (stack(1), {"use_sparse": "csr"}, ArgumentValueError),
        (stack(1), {"default_sparse": False}, ArgumentValueError),
        (stack(1), {"backend": "cupy"}, ArgumentValueError),
        ([stack(1)], {"count": 2}, ArgumentValueError),
        (stack(1), {"count": -1}, ArgumentValueError),
    ],
)
def test_mistakes_at_once(given, options, error):
    with pytest.raises(error):
        MaskContainer(given, **options)


@pytest.mark.parametrize(
    ("factories", "options", "error"),
    [
        *(([stack((4, 5)), stack(each)], {}, ArgumentValueError) for each in ((3, 5), (20,), ())),
        (stack((5,)), {}, ArgumentValueError),
        (stack((3, 2, 2)), {"count": 4}, ArgumentValueError),
        (lambda: None, {}, ArgumentTypeError),
    ],
)
def test_mistakes_of_factories_when_masks_are_needed(factories, options, error):
    masks = MaskContainer(factories, **options)
    for name in ("computed_masks", "dtype", "use_sparse"):
        with pytest.raises(error):
            getattr(masks, name)
    for container in (masks, MaskContainer(factories, **options, use_sparse=True)):
        with pytest.raises(error):
            container.get(WHOLE)


@pytest.mark.parametrize(
    ("key", "options", "error"),
    [
        (np.s_[:3], {}, ArgumentTypeError),
        (piece((0, 4), SIG), {}, ArgumentValueError),
        (piece((0, 0, 0), (1, 1, 1)), {}, ArgumentValueError),
        (WHOLE, {"sparse_backend": "x"}, ArgumentValueError),
    ],
)
def test_mistakes_when_cutting(key, options, error):
    masks = MaskContainer(lambda: STACK)
    for get in (masks.get, masks.get_for_sig_slice):
        with pytest.raises(error):
            get(key, **options)


def test_without_the_package_sparse(monkeypatch):
    monkeypatch.setitem(sys.modules, "sparse", None)
    masks = MaskContainer([lambda: STACK[0] + 0.5])
    assert masks.get(WHOLE).shape == (42, 1)
    assert sp.issparse(masks.get(WHOLE, sparse_backend="scipy.sparse"))  # SciPy is enough
    with pytest.raises(ImportError, match=r'pip install "udfdask\[sparse\]"'):
        masks.get(WHOLE, sparse_backend="sparse.pydata")


def disk(radius=2, cx=3):
    return partial(circular, cx, 4, 5, 6, radius=radius)


CHANGES = {
    "radius": MaskContainer([disk(3)]),
    "number": MaskContainer([disk(), disk()]),
    "stack": MaskContainer(disk()),
    "dtype": MaskContainer([disk()], dtype="float32"),
    "use_sparse": MaskContainer([disk()], use_sparse=False),
    "count": MaskContainer([disk()], count=1),
    "default_sparse": MaskContainer([disk()], default_sparse="sparse.pydata"),
    "code": MaskContainer([lambda: np.zeros((6, 5))]),
    "a constant in the code": MaskContainer([lambda: np.zeros((6, 5)) + 1]),
}


def test_every_difference_is_in_the_token():
    made = [MaskContainer(given, dtype="f4") for given in ([disk()], (disk(),))]
    made[1].computed_masks  # noqa: B018  # nor does it matter what was computed
    assert len({tokenize_value(masks) for masks in made}) == 1
    assert len({tokenize(MaskContainer([disk()])) for _ in range(2)}) == 1
    others = [MaskContainer([disk()]), *CHANGES.values()]
    assert len({tokenize_value(masks) for masks in others}) == len(others)
