"""The merge tree: every chunk once, in navigation order, in groups of at most the fan-in."""

import itertools
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import udfdask as ud
from udfdask.geometry.chunk_grid import Grid
from udfdask.plan.merge_tree import MergeTree, plan_merges
from udfdask.udf.buffers import BufferSpec

MODES = ["none", "rows", "chain", "tree", "all"]
counts = st.integers(0, 300)
fan_ins = st.one_of(st.none(), st.integers(2, 20))


def make_tree(mode="tree", n_chunks=10, fan_in=8):
    return MergeTree(mode=mode, n_chunks=n_chunks, fan_in=fan_in, needs_order=False)


trees = st.builds(make_tree, mode=st.sampled_from(MODES[1:]), n_chunks=counts, fan_in=fan_ins)


def merged_numbers(tree):
    """What `apply` gives where a source is the number of its chunk and a merge joins numbers."""
    sources = [[k] for k in range(tree.n_chunks)]
    return tree.apply(sources, lambda step, parts: list(itertools.chain(*parts)))


@given(trees)
def test_each_level_has_every_source_once_in_navigation_order(tree):
    below = tree.n_chunks
    for number, level in enumerate(tree.levels()):
        sources = [k for merge in level for k in merge.sources]
        assert sources == list(range(below))
        assert [(m.level, m.place) for m in level] == [(number, k) for k in range(len(level))]
        below = len(level)


@given(trees)
def test_no_merge_is_wider_than_the_fan_in_nor_empty(tree):
    for level in tree.levels():
        for merge in level:
            assert len(merge.sources) <= (tree.fan_in or tree.n_chunks)
            assert len(merge.sources) >= min(1, tree.n_chunks)


@given(st.sampled_from(["tree", "all"]), counts, fan_ins)
def test_a_tree_ends_in_one_merge_after_as_few_levels_as_the_fan_in_allows(mode, n, fan_in):
    levels = make_tree(mode, n, fan_in).levels()
    assert len(levels[-1]) == 1
    assert all(len(level) > 1 for level in levels[:-1])
    wanted, reach = 1, fan_in or max(n, 1)
    while reach < n:
        wanted, reach = wanted + 1, reach * fan_in
    assert len(levels) == wanted


@given(st.sampled_from(["rows", "chain"]), counts, fan_ins)
def test_rows_and_chains_merge_chunk_by_chunk(mode, n, fan_in):
    (level,) = make_tree(mode, n, fan_in).levels()
    assert [merge.sources for merge in level] == ([range(k, k + 1) for k in range(n)] or [range(0)])


@given(trees)
def test_the_last_merge_has_every_chunk_once_and_in_order(tree):
    _, last = merged_numbers(tree)
    every = list(range(tree.n_chunks))
    assert last == (every[-1:] if tree.mode == "rows" else every)


@given(trees)
def test_the_rows_of_each_chunk_are_where_apply_says(tree):
    rows, last = merged_numbers(tree)
    assert len(rows) == tree.n_chunks
    for chunk, holder in enumerate(rows):
        assert chunk in holder
        if tree.mode == "all":
            assert holder is last
        elif tree.mode == "tree":  # final after the first level
            assert len(holder) <= (tree.fan_in or tree.n_chunks)
        else:
            assert holder[-1] == chunk


@given(trees)
def test_merges_come_after_their_sources(tree):
    seen = set()

    def merge(step, parts):
        assert all(part in seen or step.level == 0 for part in parts)
        key = ("merge", step.level, step.place)
        assert key not in seen
        seen.add(key)
        return key

    _, last = tree.apply([("chunk", k) for k in range(tree.n_chunks)], merge)
    assert last in seen
    assert len(seen) == sum(map(len, tree.levels()))


@given(counts, fan_ins)
def test_only_a_merge_all_that_is_called_on_its_own_results_is_checked(n, fan_in):
    for mode in MODES:
        tree = make_tree(mode, n, fan_in)
        checked = [merge for level in tree.levels() for merge in level if merge.checked]
        if mode != "all" or fan_in is None:
            assert not checked
            continue
        first = tree.levels()[0]
        # one source cannot be split into two parts
        assert checked == [m for m in dict.fromkeys((first[0], first[-1])) if len(m.sources) > 1]


@given(counts, fan_ins)
def test_nothing_is_merged_where_rows_are_the_results(n, fan_in):
    tree = make_tree("none", n, fan_in)
    sources = list(range(n))
    assert tree.levels() == ()
    rows, last = tree.apply(sources, lambda *_: pytest.fail("merged"))
    assert rows is sources
    assert last is None


@pytest.mark.parametrize("mode", MODES[1:])
@pytest.mark.parametrize("fan_in", [None, 2, 8])
def test_no_chunk_and_a_single_chunk_take_one_merge(mode, fan_in):
    for n in (0, 1):
        ((only,),) = make_tree(mode, n, fan_in).levels()
        assert (only.sources, only.checked) == (range(n), False)
    assert make_tree(mode, 0, fan_in).apply([], lambda step, parts: len(parts)) == ([], 0)


def test_ten_chunks_by_three():
    levels = make_tree(n_chunks=10, fan_in=3).levels()
    groups = [[(m.sources.start, m.sources.stop) for m in level] for level in levels]
    assert groups == [[(0, 3), (3, 6), (6, 9), (9, 10)], [(0, 3), (3, 4)], [(0, 2)]]


def test_a_tree_is_a_frozen_value():
    tree = make_tree()
    with pytest.raises(FrozenInstanceError):
        tree.fan_in = 2
    assert tree == make_tree()
    assert hash(tree) == hash(make_tree())


class Plain(ud.UDF):
    def process_frame(self, frame):
        pass


class Merges(Plain):
    def merge(self, dest, src):
        pass


class Assigns(Merges):
    merge_assigns_nav = True


class MergesAll(Plain):
    def merge_all(self, ordered_results):
        return {}


class Both(Merges, MergesAll):
    pass


class BothAssign(Assigns, MergesAll):
    pass


def planned(udf, *kinds, dtype="float32", split_every=8):
    grid = Grid.of([(1,) * 10])
    specs = [BufferSpec(kind=k, extra_shape=(), dtype=np.dtype(dtype)) for k in kinds]
    buffers = {f"{k}_{n}": spec for n, (k, spec) in enumerate(zip(kinds, specs, strict=True))}
    return plan_merges(udf, buffers, grid, split_every)


@pytest.mark.parametrize(
    ("udf", "kinds", "batch", "progressive"),
    [
        (Plain(), ["nav"], "none", "none"),
        (Plain(), [], "none", "none"),
        (Merges(), ["nav", "nav"], "rows", "rows"),
        (Merges(), ["nav", "sig"], "chain", "chain"),
        (Merges(), ["sig", "single"], "tree", "tree"),
        (Merges(), [], "tree", "tree"),
        (Assigns(), ["nav"], "rows", "rows"),
        (Assigns(), ["nav", "single"], "tree", "tree"),
        (MergesAll(), ["nav"], "all", "all"),
        (MergesAll(), ["sig"], "all", "all"),
        (Both(), ["nav"], "all", "rows"),
        (Both(), ["nav", "sig"], "all", "chain"),
        (Both(), ["sig"], "all", "tree"),
        (BothAssign(), ["nav", "sig"], "all", "tree"),
    ],
)
def test_what_combines_results_follows_from_methods_and_kinds(udf, kinds, batch, progressive):
    found = planned(udf, *kinds)
    assert [tree.mode for tree in found] == [batch, progressive]
    assert all((tree.n_chunks, tree.fan_in) == (10, 8) for tree in found)


def test_progressive_runs_keep_the_order_of_chains_merge_all_and_objects():
    ordered = {
        "none": planned(Plain(), "nav"),
        "rows": planned(Merges(), "nav"),
        "chain": planned(Merges(), "nav", "sig"),
        "tree": planned(Merges(), "sig"),
        "objects": planned(Merges(), "single", dtype=object),
        "rows of objects": planned(Merges(), "nav", dtype=object),
        "all": planned(MergesAll(), "sig"),
        "all, but merge": planned(Both(), "sig"),
    }
    assert [name for name, (_, tree) in ordered.items() if tree.needs_order] == [
        "chain",
        "objects",
        "all",
    ]


@pytest.mark.parametrize(
    ("mode", "fan_in", "words"),
    [
        ("none", 8, "each chunk's rows are the result, nothing is merged"),
        ("rows", 8, "own merge, on each chunk by itself"),
        ("chain", 8, "own merge, one chunk after another in navigation order"),
        ("tree", 4, "own merge, of up to 4 partial results at a time"),
        ("tree", None, "own merge, of all partial results at once"),
        ("all", 8, "merge_all, of up to 8 partial results at a time"),
        ("all", None, "merge_all, of all partial results at once"),
    ],
)
def test_a_tree_in_words(mode, fan_in, words):
    assert str(make_tree(mode, fan_in=fan_in)) == words
