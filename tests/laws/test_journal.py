"""A journal: results equal to the bit, and nothing that is stored is loaded again."""

import random

import numpy as np
import pytest

import udfdask as ud
from journal_cases import CASES, assert_equal, assert_same_bits, damage, data, loads, stop_after
from udfdask.udfs import PickUDF, SumSigUDF, SumUDF


def records(journal):
    return sorted(journal.glob("records/*.record"))


@pytest.mark.parametrize("case", CASES)
def test_an_interrupted_run_goes_on_where_it_was(case, tmp_path):
    make, journal = CASES[case], tmp_path / "journal"
    expected = ud.compute(*make(tmp_path), scheduler="synchronous")
    once = loads(tmp_path)
    for n in sorted({0, 1, len(once) // 2, len(once) - 1} - {-1}):
        stop_after(tmp_path, n)
        if once:
            with pytest.raises(RuntimeError, match="power failure"):
                ud.compute(*make(tmp_path), journal=journal, scheduler="synchronous")
        before = loads(tmp_path)
        stop_after(tmp_path, None)
        found = ud.compute(*make(tmp_path), journal=journal, scheduler="synchronous")
        assert_equal(found, expected)
        after = loads(tmp_path)
        if case not in ("two passes", "sliced", "signal chunks", "by signal chunk", "descanned"):
            # one load per chunk: each chunk is loaded in one of both runs
            assert after + before == once
        assert sum(after.values()) < sum(once.values()) or n == 0 or n == 1
        found = ud.compute(*make(tmp_path), journal=journal, scheduler="synchronous")
        assert_equal(found, expected)
        assert not loads(tmp_path)
        for file in records(journal):
            file.unlink()


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("how", ["removed", "damaged", "empty", "cut"])
def test_lost_records_are_computed_again(case, how, tmp_path):
    make, journal = CASES[case], tmp_path / "journal"
    expected = ud.compute(*make(tmp_path), scheduler="synchronous")
    ud.compute(*make(tmp_path), journal=journal, scheduler="threads")
    everything = {file.name for file in records(journal)}
    for seed in range(4):
        choice = random.Random(seed)
        for file in records(journal):
            if choice.random() < (0.3, 0.05, 0.7, 1)[seed]:
                damage(file, how)
        found = ud.compute(*make(tmp_path), journal=journal, scheduler="synchronous")
        assert_equal(found, expected)
    assert {file.name for file in records(journal)} == everything


def test_only_chunks_without_a_record_are_loaded(tmp_path):
    journal = tmp_path / "journal"

    def run():
        return ud.run_udf(data(tmp_path), SumSigUDF())

    expected = run().compute(journal=journal)
    loads(tmp_path)
    files = records(journal)
    assert len(files) == 12
    for file in files[::3]:
        file.unlink()
    assert_equal([run().compute(journal=journal)], [expected])
    assert set(loads(tmp_path).values()) == {1}
    for file in files[::5]:
        file.unlink()
    (sums,) = ud.compute(run()["intensity"][:2], journal=journal)
    assert_same_bits(sums, expected["intensity"][:2])


@pytest.mark.parametrize("case", ["several", "chain", "tree with nav", "roi", "large parameter"])
def test_each_scheduler_stores_and_reads(case, scheduler, tmp_path):
    make, journal = CASES[case], tmp_path / "journal"
    expected = ud.compute(*make(tmp_path), scheduler="synchronous")
    once = loads(tmp_path)
    found = ud.compute(*make(tmp_path), journal=journal, **scheduler)
    assert_equal(found, expected)
    assert loads(tmp_path) == once
    for file in records(journal)[::2]:
        file.unlink()
    found = ud.compute(*make(tmp_path), journal=journal, **scheduler)
    assert_equal(found, expected)
    assert sum(loads(tmp_path).values()) <= sum(once.values())
    found = ud.compute(*make(tmp_path), journal=journal, **scheduler)
    assert_equal(found, expected)


def test_sums_do_not_pile_up(tmp_path):
    """A journal holds the nav rows of all chunks, but only a few records of frames."""
    for case, most in [("tree", 1), ("chain", 13), ("tree with nav", 6), ("several", 26)]:
        journal = tmp_path / case.replace(" ", "-")
        ud.compute(*CASES[case](tmp_path), journal=journal, scheduler="threads")
        assert len(records(journal)) <= most, case


def test_one_udf_of_a_list_can_be_missing(tmp_path):
    """Chunks run only the UDFs whose partial results are missing."""
    journal = tmp_path / "journal"

    def run():
        x = data(tmp_path)
        return ud.run_udf(x, [SumSigUDF(), PickUDF(), SumUDF()], roi=(1, slice(0, 4)))

    expected = ud.compute(*run(), journal=journal)
    loads(tmp_path)
    files = records(journal)
    for file in files:
        content = file.read_bytes()
        file.unlink()
        assert_equal(ud.compute(*run(), journal=journal), expected)
        assert sum(loads(tmp_path).values()) <= 2
        assert file.read_bytes() == content


def test_results_of_a_list_can_be_computed_one_by_one(tmp_path):
    journal = tmp_path / "journal"
    total, sums = ud.run_udf(data(tmp_path), [SumUDF(), SumSigUDF()])
    expected = ud.compute(total, sums)
    once = loads(tmp_path)
    assert_equal([total.compute(journal=journal)], expected[:1])
    assert loads(tmp_path) == once
    assert_equal([sums.compute(journal=journal)], expected[1:])
    assert_equal(ud.compute(total, sums, journal=journal), expected)
    loads(tmp_path)
    ud.compute(total, sums, journal=journal)
    assert not loads(tmp_path)


def test_an_empty_region_has_nothing_to_save(tmp_path):
    runs = ud.run_udf(data(tmp_path), [SumUDF(), SumSigUDF()], roi=np.zeros((4, 5), dtype=bool))
    for _ in range(2):
        total, sums = ud.compute(*runs, journal=tmp_path / "journal")
        assert not total["intensity"].any()
        assert not sums["intensity"].any()


def test_datasets_go_on(tmp_path):
    pytest.importorskip("xarray")
    journal = tmp_path / "journal"

    def run():
        total, sums = ud.run_udf(data(tmp_path), [SumUDF(), SumSigUDF()])
        return total.to_xarray(), sums.to_xarray()

    expected = ud.compute(*run())
    loads(tmp_path)
    for lost in (12, 0, 4):
        found = ud.compute(*run(), journal=journal)
        assert loads(tmp_path).total() == lost
        assert all(one.identical(other) for one, other in zip(found, expected, strict=True))
        if lost == 0:
            sizes = {file: file.stat().st_size for file in records(journal)}
            assert len(sizes) == 13
            del sizes[max(sizes, key=sizes.__getitem__)]  # the sum of all frames
            for file in list(sizes)[:4]:
                file.unlink()
