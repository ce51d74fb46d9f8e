"""Points 15 to 17: the default merge, merge and merge_all."""

from collections.abc import Mapping

import dask.array as da
import numba
import numpy as np
import pytest

import udfdask as ud
from making import NAV, SIG, SYNC, compute, make, mask_of
from udfdask.testing import raise_if_dask_computes
from udfdask.udf.buffers import Views
from udfdask.udfs import SumUDF


@pytest.mark.point(16)
def test_valid_nav_mask(x):
    """In a merge what came before, in get_results everything."""
    log = []

    def merge(self, dest, src):
        log.append(int(self.meta.get_valid_nav_mask().sum()))
        assert self.meta.get_valid_nav_mask(full_nav=True).shape == (24,)
        assert len(self.meta.coordinates) in (4, 8)

    def get_results(self):
        return {"v": int(self.meta.get_valid_nav_mask(full_nav=True).sum())}

    udf = make(
        {"v": {"kind": "single", "dtype": "int64"}},
        process_frame=lambda self, frame: None,
        merge=merge,
        get_results=get_results,
    )()
    assert compute(x, udf)["v"] == 24
    assert log == [0, 8, 12, 20]


@pytest.mark.point(15)
@pytest.mark.parametrize(
    ("buffers", "named"),
    [
        ({"a": {"kind": "sig"}}, "a"),
        ({"a": {"kind": "nav"}, "b": {"kind": "single"}}, "b"),
        ({"a": {"kind": "nav"}, "b": {"kind": "sig", "use": "private"}}, "b"),
        ({"a": {"kind": "single"}, "b": {"kind": "sig", "use": "private"}}, "a, b"),
    ],
)
def test_default_merge_is_for_nav_buffers_only(buffers, named):
    """Found before anything runs, with the names of the buffers."""
    udf = make(buffers, process_frame=lambda self, frame: None)()
    with (
        raise_if_dask_computes(),
        pytest.raises(NotImplementedError, match=rf"combine: {named} \("),
    ):
        ud.run_udf(da.zeros((2, 3, 4, 4), chunks=2), udf)


@pytest.mark.point(15)
def test_default_merge_leaves_out_what_is_only_a_result(x):
    udf = make(
        {
            "a": {"kind": "nav"},
            "b": {"kind": "nav", "use": "private"},
            "late": {"kind": "sig", "use": "result_only"},
        },
        process_frame=lambda self, frame: setattr(self.results, "b", frame.sum()),
        get_results=lambda self: {"late": np.full(SIG, self.results.b.sum(), "float32")},
    )()
    np.testing.assert_allclose(compute(x, udf)["late"], x.sum().compute(**SYNC), rtol=1e-6)


@pytest.mark.point(15)
def test_default_merge_casts_safely():
    """As a merge calls it through super(): with other dtypes than declared it may be asked to."""
    udf, rows = ud.UDF(), np.arange(3)
    dest = {"v": np.zeros(3, "float64")}
    udf.merge(Views(dest), Views({"v": rows.astype("int16")}))
    assert dest["v"].tolist() == [0, 1, 2]
    for dtype in ("int64", "complex64", "U3"):
        with pytest.raises(
            TypeError, match=rf"cannot merge buffer 'v' of dtype {dtype.replace('U', '<U')} safely"
        ):
            udf.merge(Views({"v": np.zeros(3, "float32")}), Views({"v": rows.astype(dtype)}))


@pytest.mark.point(15)
def test_default_merge_by_super(x, values):
    def merge(self, dest, src):
        ud.UDF.merge(self, dest, src)
        dest.v *= 2

    udf = make(
        {"v": {"kind": "nav"}},
        process_frame=lambda self, frame: setattr(self.results, "v", frame.max()),
        merge=merge,
    )()
    np.testing.assert_allclose(compute(x, udf)["v"], 2 * values.max(axis=(2, 3)))


@numba.njit
def add_all(dest, src):
    for k in range(dest.size):
        dest.flat[k] += src.flat[k]
        src.flat[k] = 0


@pytest.mark.point(16)
@pytest.mark.parametrize("split_every", [2, False])
def test_merge_gets_real_writable_arrays(x, split_every):
    """Such as numba's functions take; by attribute, with `in` and iteration."""

    def merge(self, dest, src):
        assert list(dest) == list(src) == ["n", "s", "o"]
        assert "s" in dest
        assert "x" not in src
        assert dict(dest.items()).keys() == dict(src.items()).keys()
        for name in dest:
            for view in (dest, src):
                array = getattr(view, name)
                assert type(array) is np.ndarray
                assert array.flags.writeable
                assert array.flags.c_contiguous
            add_all(getattr(dest, name), getattr(src, name))

    def process_frame(self, frame):
        self.results.n = frame.sum()
        self.results.s += frame
        self.results.o += 1

    udf = make(
        {"n": {"kind": "nav"}, "s": {"kind": "sig"}, "o": {"kind": "single", "dtype": "int64"}},
        process_frame=process_frame,
        merge=merge,
    )()
    lazy = ud.run_udf(x, udf, split_every=split_every)
    for done in (lazy.compute(**SYNC), lazy.persist(**SYNC).compute(scheduler="threads")):
        np.testing.assert_allclose(done["n"], x.sum(axis=(2, 3)).compute(**SYNC))
        np.testing.assert_allclose(done["s"], x.sum(axis=(0, 1)).compute(**SYNC))
        assert done["o"] == 24


@pytest.mark.point(16)
@pytest.mark.parametrize("assigns", [True, False])
@pytest.mark.parametrize("roi", [None, mask_of(np.s_[1:, 2:5], (0, 0))])
def test_views_and_places_in_a_merge_are_those_of_src(x, roi, assigns):
    def process_tile(self, tile):
        self.results.n[:] = self.meta.coordinates

    def merge(self, dest, src):
        np.testing.assert_array_equal(self.meta.coordinates, src.n)
        assert dest.n.shape == src.n.shape
        assert self.results.n.shape == src.n.shape
        assert self.meta.slice.shape == (len(src.n), *SIG)
        chosen = np.ones(NAV, dtype=bool) if roi is None else roi
        (rows,) = self.meta.slice.get(nav_only=True)
        np.testing.assert_array_equal(np.argwhere(chosen)[rows], src.n)
        dest.n[:] = src.n
        dest.o += 1

    udf = make(
        {"n": {"kind": "nav", "dtype": "int64", "extra_shape": (2,)}, "o": {"kind": "single"}},
        process_tile=process_tile,
        merge=merge,
        merge_assigns_nav=assigns,
    )()
    done = compute(x, udf, roi=roi, split_every=2)
    chosen = np.ones(NAV, dtype=bool) if roi is None else roi
    np.testing.assert_array_equal(done.raw["n"], np.argwhere(chosen))


@pytest.mark.point(16)
def test_valid_nav_mask_of_a_node(x):
    """In a tree: what has been merged into this node's dest, not into the others."""
    log = []

    def merge(self, dest, src):
        valid = self.meta.get_valid_nav_mask(full_nav=True).reshape(NAV)
        log.append((np.argwhere(valid).tolist(), self.meta.coordinates.tolist()))
        np.testing.assert_array_equal(self.meta.get_valid_nav_mask(), valid.reshape(-1))

    udf = make(
        {"o": {"kind": "single"}},
        process_frame=lambda self, frame: None,
        merge=merge,
        split_every=2,
    )()
    compute(x, udf)
    first, last = ([[r, c] for r in rows for c in range(6)] for rows in ((0, 1), (2, 3)))
    corner = [[r, c] for r in (2, 3) for c in range(4)]
    assert len(log) == 6
    assert ([], corner) in log  # the first chunk of the second node
    assert (corner, [[r, c] for r in (2, 3) for c in (4, 5)]) in log
    assert sorted(log[-1][0]) == first  # the root: the second node after the first
    assert sorted(log[-1][1]) == last


class All(ud.UDF):
    """merge_all over every kind of buffer; notes what it is given."""

    def __init__(self, values, roi):
        super().__init__(values=values, roi=roi)

    def get_result_buffers(self):
        return {
            "n": self.buffer("nav", dtype="int64", extra_shape=(2,)),
            "s": self.buffer("sig", dtype="float64"),
            "o": self.buffer("single", dtype="int64"),
        }

    def process_frame(self, frame):
        self.results.n[:] = self.meta.coordinates[0]
        self.results.s += frame
        self.results.o += 1

    def merge_all(self, ordered_results):
        assert isinstance(ordered_results, Mapping)
        rows = np.argwhere(np.ones(NAV, dtype=bool) if self.params.roi is None else self.params.roi)
        for key, part in ordered_results.items():
            assert isinstance(key, ud.Slice)
            assert key.shape == (len(part.n), *SIG)
            np.testing.assert_array_equal(rows[key.get(nav_only=True)], part.n)
            assert sorted(part) == ["n", "o", "s"]
            for name in part:
                assert type(part[name]) is np.ndarray
                assert part[name] is getattr(part, name)
            np.testing.assert_array_equal(ordered_results[key].s, part.s)
        firsts = [tuple(part.n[0]) for part in ordered_results.values()]
        assert firsts == sorted(firsts)
        parts = list(ordered_results.values())
        return {
            "n": np.concatenate([p.n for p in parts]),
            "s": np.stack([p["s"] for p in parts]).sum(axis=0),
            "o": sum(p.o for p in parts),
        }


@pytest.mark.point(17)
@pytest.mark.parametrize("split_every", [2, 3, False])
@pytest.mark.parametrize("roi", [None, mask_of(np.s_[1:, 2:5], (0, 0))])
def test_merge_all(x, values, split_every, roi):
    """There is no merge; keys are Slices in flat nav order, partials NumPy arrays."""
    assert All.merge is ud.UDF.merge
    done = compute(x, All(values, roi), roi=roi, split_every=split_every)
    chosen = np.ones(NAV, dtype=bool) if roi is None else roi
    np.testing.assert_array_equal(done.raw["n"], np.argwhere(chosen))
    np.testing.assert_allclose(done["s"], values[chosen].sum(axis=0))
    assert done["o"] == np.count_nonzero(chosen)


@pytest.mark.point(17)
def test_merge_all_wins_over_merge(x, values):
    class Both(All):
        def merge(self, dest, src):
            raise AssertionError("called")

    assert compute(x, Both(values, None))["o"] == 24


@pytest.mark.point(17)
def test_merges_of_every_sort_in_one_pass(x, values):
    loads = []

    def load(block):
        loads.append(block.shape)
        return block

    class Nav(ud.UDF):
        def get_result_buffers(self):
            return {"v": self.buffer("nav")}

        def process_frame(self, frame):
            self.results.v = frame.sum()

    counted = x.map_blocks(load, meta=np.empty((0,) * 4, "float32"))
    neither, own, both = compute(counted, [Nav(), SumUDF(), All(values, None)])
    assert len(loads) == 4
    np.testing.assert_allclose(neither["v"], values.sum(axis=(2, 3)))
    np.testing.assert_allclose(own["intensity"], values.sum(axis=(0, 1)))
    np.testing.assert_allclose(both["s"], values.sum(axis=(0, 1)))
