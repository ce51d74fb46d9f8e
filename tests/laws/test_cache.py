"""A cache: results equal to the bit, and nothing that is kept is computed again."""

import contextlib
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import udf_zoo as zoo
import udfdask as ud
from cache_cases import (
    CASES,
    SHAPE,
    LooksAround,
    assert_equal,
    assert_same_bits,
    computed,
    damage,
    data,
    loads,
    records,
    stop_after,
    without_cache,
)
from making import LATE
from udfdask.scheduling.records.folder import DamagedRecordError, RecordFolder, open_folder
from udfdask.udfs import CoMUDF, PickUDF, StdDevUDF, SumSigUDF, SumUDF


@pytest.mark.parametrize("case", CASES)
def test_a_second_run_loads_nothing(case, cache, tmp_path):
    make = CASES[case]
    expected = without_cache(*make(tmp_path))
    once = loads(tmp_path)
    assert_equal(computed(*make(tmp_path)), expected)
    assert loads(tmp_path) == once
    assert_equal(computed(*make(tmp_path)), expected)
    assert not loads(tmp_path)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("limit", [None, 10**9])
def test_an_interrupted_run_goes_on_where_it_was(case, limit, tmp_path):
    make = CASES[case]
    expected = computed(*make(tmp_path))
    once = loads(tmp_path)
    for n in sorted({0, 1, len(once) // 2, len(once) - 1} - {-1}):
        cache = open_folder(tmp_path / f"cache-{n}", limit)
        stop_after(tmp_path, n)
        if once:
            with pytest.raises(RuntimeError, match="power failure"):
                computed(*make(tmp_path), cache=cache)
        before = loads(tmp_path)
        stop_after(tmp_path, None)
        assert_equal(computed(*make(tmp_path), cache=cache), expected)
        after = loads(tmp_path)
        if case not in ("two passes", "sliced", "signal chunks", "by signal chunk", "descanned"):
            # one load per chunk: each chunk is loaded in one of both runs
            assert after + before == once
        assert sum(after.values()) < sum(once.values()) or n in (0, 1)
        assert_equal(computed(*make(tmp_path), cache=cache), expected)
        assert not loads(tmp_path)


def test_sums_do_not_pile_up_beside_a_store(tmp_path):
    """The records of a run that is resumed are the nav rows, and only a few of frames."""
    for case, most in [("tree", 1), ("chain", 13), ("tree with nav", 6), ("several", 26)]:
        cache = open_folder(tmp_path / case.replace(" ", "-"), None)
        computed(*CASES[case](tmp_path), cache=cache, scheduler="threads")
        _, *others = sorted(Path(cache.path).iterdir())
        assert len(others) < most, case
        for file in others:
            file.unlink()
        # one record is enough for the same run: no warning
        computed(*CASES[case](tmp_path), cache=cache)


def test_only_what_is_missing_is_computed(cache, tmp_path):
    """Chunks run only the UDFs whose partial results are missing."""

    def run():
        x = data(tmp_path)
        return ud.run_udf(x, [SumSigUDF(), PickUDF(), SumUDF()], roi=(1, slice(0, 4)))

    expected = computed(*run())
    loads(tmp_path)
    for file in records(cache):
        content = file.read_bytes()
        file.unlink()
        assert_equal(computed(*run()), expected)
        assert sum(loads(tmp_path).values()) <= 2
        assert not file.exists() or file.read_bytes() == content
    (sums,) = computed(ud.run_udf(data(tmp_path), SumSigUDF())["intensity"][1:2])
    assert_same_bits(sums[0, :4], expected[0]["intensity"][1, :4])


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("how", ["removed", "damaged", "empty", "cut"])
def test_lost_records_are_computed_again(case, how, cache, tmp_path):
    make = CASES[case]
    expected = without_cache(*make(tmp_path))
    computed(*make(tmp_path))
    everything = {file.name for file in records(cache)}
    for seed in range(3):
        choice = random.Random(seed)
        for file in records(cache):
            if choice.random() < (0.3, 0.7, 1)[seed]:
                damage(file, how)
        assert_equal(computed(*make(tmp_path)), expected)
    assert {file.name for file in records(cache)} <= everything


@pytest.mark.parametrize("case", ["several", "chain", "tree with nav", "roi", "large parameter"])
def test_each_scheduler_keeps_and_reads(case, cache, options, tmp_path):
    make = CASES[case]
    expected = without_cache(*make(tmp_path))
    loads(tmp_path)
    assert_equal(ud.compute(*make(tmp_path), **options), expected)
    once = loads(tmp_path)
    assert_equal(ud.compute(*make(tmp_path), **options), expected)
    assert not loads(tmp_path)
    for file in records(cache)[::2]:
        file.unlink()
    assert_equal(ud.compute(*make(tmp_path), **options), expected)
    assert sum(loads(tmp_path).values()) <= sum(once.values())


CHANGES = st.fixed_dictionaries(
    {
        "roi": st.none() | st.lists(st.booleans(), min_size=20, max_size=20),
        "udfs": st.lists(st.integers(0, 6), min_size=1, max_size=3, unique=True),
        "parameter": st.integers(1, 2),
        "dtype": st.sampled_from(["int32", "float32"]),
        "chunks": st.sampled_from([(1, 2, 3, 4), (2, 3, 3, 4), (1, 2, 2, 4)]),
        "add": st.integers(0, 1),
        "damage": st.sampled_from([None, "removed", "damaged", "cut"]),
        "threads": st.booleans(),
    }
)


@given(
    edits=st.lists(CHANGES, min_size=2, max_size=6),
    limit=st.sampled_from(["1 GB", "200 kB", "20 kB", 1]),
    seed=st.integers(0, 99),
)
def test_runs_with_a_cache_equal_runs_without(edits, limit, seed):
    choice = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        for edit in edits:
            for file in records(Path(folder, "cache")):
                if edit["damage"] and choice.random() < 0.3:
                    # the run before may still remove records for the limit
                    with contextlib.suppress(FileNotFoundError):
                        damage(file, edit["damage"])
            roi = edit["roi"] and np.array(edit["roi"]).reshape(SHAPE[:2])
            offered = [
                SumUDF(),
                CoMUDF(r=float(edit["parameter"])),
                StdDevUDF(),
                LooksAround(how="slice" if edit["parameter"] == 1 else "sometimes"),
                zoo.Chain(),
                zoo.AssigningTree(),
                zoo.MergeAllNav(),
            ]
            x = data(folder, chunks=edit["chunks"], dtype=edit["dtype"]) + edit["add"]
            run = ud.run_udf(x, [offered[k] for k in edit["udfs"]], roi=roi)
            scheduler = "threads" if edit["threads"] else "synchronous"
            with ud.cache(Path(folder, "cache"), limit=limit):
                found = computed(*run, scheduler=scheduler)
            assert_equal(found, without_cache(*run))


def test_records_that_are_removed_all_the_time(cache, tmp_path, monkeypatch):
    run = ud.run_udf(data(tmp_path), [SumUDF(), zoo.Chain()])
    expected = computed(*run)

    def removed(self, name):
        self.remove([name])
        raise DamagedRecordError(name)

    get = RecordFolder.get
    monkeypatch.setattr(RecordFolder, "get", removed)
    assert_equal(computed(*run), expected)
    # the first record of each attempt has vanished since it was found
    calls = []

    def vanished(self, name):
        calls.append(name)
        return removed(self, name) if len(calls) % 3 == 1 else get(self, name)

    monkeypatch.setattr(RecordFolder, "get", vanished)
    assert_equal(computed(*run), expected)


PROGRAM = """
import random, sys
import dask.array as da, numpy as np, udfdask as ud
from udfdask.udfs import CoMUDF, PickUDF, StdDevUDF, SumSigUDF, SumUDF

if __name__ == "__main__":
    folder, seed = sys.argv[1], int(sys.argv[2])
    choice = random.Random(seed)
    scan = np.arange(24 * 16 * 16, dtype="u2").reshape(4, 6, 16, 16)
    x = da.from_array(scan, chunks=(1, 2, 16, 16))
    offered = [SumUDF(), CoMUDF(r=4.0), StdDevUDF(), CoMUDF(r=5.0)]
    for _ in range(15):
        udfs = choice.sample(offered, 2)
        roi = np.zeros((4, 6), dtype=bool)
        roi[: choice.randrange(1, 5)] = True
        run = ud.run_udf(x, udfs, roi=roi)
        with ud.cache(folder, limit="150 kB"):
            found = ud.compute(*run, scheduler="threads", num_workers=2)
        for one, other in zip(found, ud.compute(*run), strict=True):
            for name in other:
                np.testing.assert_array_equal(one[name], other[name])
"""


def test_two_processes_share_a_folder(tmp_path):
    """Both read and write the same records, and remove each other's."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    command = [sys.executable, "-W", "error", program, tmp_path / "cache"]
    running = [
        subprocess.Popen([*command, str(seed)], stderr=subprocess.PIPE, text=True)
        for seed in range(2)
    ]
    for process in running:
        assert process.wait(timeout=LATE) == 0, process.stderr.read()
        process.stderr.close()
    files = records(tmp_path / "cache")
    assert files
    assert sum(file.stat().st_size for file in files) < 300_000
