"""What `explain` says about merges that run one after another."""

import dask.array as da
import pytest

import udfdask as ud
from udf_zoo import RowsMerge
from udfdask.udfs import CoMUDF, SumUDF

X = da.ones((6, 4, 3, 3), chunks=(1, 4, 3, 3))


class Chain(ud.UDF):
    def get_result_buffers(self):
        return {
            "each": self.buffer(kind="nav", dtype="float64"),
            "total": self.buffer(kind="single", dtype="float64"),
        }

    def process_tile(self, tile):
        self.results.each += tile.sum(axis=(1, 2))
        self.results.total += tile.sum()

    def merge(self, dest, src):
        dest.each[:] = src.each
        dest.total += src.total


class Tree(Chain):
    merge_assigns_nav = True


def test_a_chain_is_explained():
    (note,) = ud.explain(X, Chain()).notes
    assert note.startswith("Chain: merges run one after another, because merge might compute the ")
    assert "(dest.each[:] = src.each), set merge_assigns_nav = True in the class" in note


@pytest.mark.parametrize("udf", [Tree(), RowsMerge(), SumUDF(), CoMUDF(cy=1, cx=1)])
def test_no_note_where_nothing_is_to_be_done(udf):
    assert not ud.explain(X, udf).notes


def test_the_advice_is_true():
    """Who follows it gets equal results from fewer tasks."""
    before, after = ud.run_udf(X, Chain()), ud.run_udf(X, Tree())
    assert after.explain().n_tasks < before.explain().n_tasks
    for name in before:
        assert (before[name].compute() == after[name].compute()).all()
