"""What a UDF names outside of itself: environment variables, settings, and files."""

import decimal
import os
import warnings
from pathlib import Path

import dask
import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from udfdask.base.names.naming import identity_of
from udfdask.scheduling.records.data_names import DataNames
from udfdask.scheduling.records.runs import find_runs, names_of

SOURCE = """
import decimal, importlib, math, os, sys
from decimal import Decimal
from os import environ, getenv
from pathlib import Path
import dask, dask.config
import numpy as np
import udfdask as ud

NAME, LOG = "OWN_SCALE", Path("log.txt")
{more}

class Own(ud.UDF):
    def get_result_buffers(self):
        return {{"value": self.buffer("nav", dtype="float64")}}

    def process_frame(self, frame):
        {body}
        self.results.value[:] = value
"""


def udf(body, more="", **parameters):
    """A UDF with one line of code."""
    space = {"__name__": "own"}
    exec(SOURCE.format(body=body, more=more), space)
    return space["Own"](**parameters)


def name(*args, **parameters):
    """The name of a UDF."""
    run = ud.run_udf(da.ones((2, 3, 4, 4), chunks=1), udf(*args, **parameters))
    return names_of(find_runs([run])[0], DataNames())[1]


READS = {
    "environ": 'value = float(os.environ["OWN_SCALE"])',
    "getenv": 'value = float(os.getenv("OWN_SCALE", 1))',
    "imported": 'value = float(getenv("OWN_SCALE", 1)) + len(environ)',
    "global name": "value = float(os.environ[NAME])",
    "parameter": "value = float(environ[self.params.variable])",
    "import inside": 'import os; value = float(os.environ["OWN_SCALE"])',
    "helper": "value = helper()",
}


@pytest.mark.parametrize("how", READS)
def test_a_variable_counts_if_the_code_names_it(how, monkeypatch):
    helper = 'def helper():\n    return float(os.environ["OWN_SCALE"])'
    monkeypatch.setenv("OWN_SCALE", "1")
    first = name(READS[how], helper, variable="OWN_SCALE")
    monkeypatch.setenv("SLURM_JOB_ID", "17")
    monkeypatch.setenv("PYTHONHASHSEED", "3")
    assert name(READS[how], helper, variable="OWN_SCALE") == first
    monkeypatch.setenv("OWN_SCALE", "2")
    assert name(READS[how], helper, variable="OWN_SCALE") != first
    monkeypatch.delenv("OWN_SCALE")
    assert name(READS[how], helper, variable="OWN_SCALE") != first


def test_variables_that_are_only_words_do_not_count(monkeypatch):
    first = name('value = len("HOME")')
    monkeypatch.setenv("HOME", "/elsewhere")
    assert name('value = len("HOME")') == first
    assert name('value = len(os.environ["HOME"])') != name('value = len(os.environ["PATH"])')


@pytest.mark.parametrize(
    "body",
    [
        'value = dask.config.get("own.scale", 1)',
        'import dask.config; value = dask.config.get("own.scale", 1)',
        'from dask import config; value = config.get("own.scale", 1)',
    ],
)
def test_a_setting_of_dask_counts_if_the_code_names_it(body):
    first = name(body)
    with dask.config.set({"own.scale": 2}):
        assert name(body) != first
    with dask.config.set({"own.other": 2}):
        assert name(body) == first


@pytest.mark.parametrize(
    ("body", "given"),
    [
        ('value = float(open("log").read())', None),
        ('value = float(open("log", "r").read())', None),
        ('value = float(np.loadtxt("log")) + open("other", "a").write("x")', None),
        ("value = float(self.params.log.open().read())", Path("log")),
        *(("value = self.params.log is None", path) for path in ("log", "~/log", Path("log"))),
    ],
)
def test_a_file_that_is_read_or_given_is_an_input(body, given, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    found = set()
    for text in ("1", "12"):
        (tmp_path / "log").write_text(text)
        found.add(str(name(body, log=given)))
    assert len(found) == 2


class Odd:
    """Cannot be pickled, in a way that nobody foresees."""

    def __reduce_ex__(self, protocol):
        raise RuntimeError("dictionary changed size during iteration")


@pytest.mark.parametrize(
    "body",
    [
        'value = sys.modules["math"].pi',
        'value = importlib.import_module("ma" + "th".lower()).pi',
        'value = len(compile("1", "", "eval").co_code)',
        'value = eval("1 + 1")',
        'n = 1; value = len(os.environ.get(f"OWN_{n}", ""))',
        'n = "1"; value = len(os.environ.get("OWN_" + n, ""))',
        'n = 1; value = len(os.environ.get("OWN_%d" % n, ""))',
        "value = float(decimal.Decimal(1) / 7)",
        "value = len([odd])",
    ],
)
def test_what_cannot_be_named_is_computed_with_one_warning(body, tmp_path):
    own = udf(body)
    own.process_frame.__func__.__globals__["odd"] = Odd()
    run = ud.run_udf(da.ones((2, 3, 4, 4), chunks=1), own)
    expected = run.compute()
    for _ in range(2):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = run.compute(cache=tmp_path / "cache")
        assert ["not kept" in str(each.message) for each in caught] == [True]
        np.testing.assert_array_equal(found["value"], expected["value"])
    assert not list((tmp_path / "cache" / "records").iterdir())


def test_what_reads_settings_keeps_its_identity():
    assert identity_of(os.environ) == identity_of(os.environ)
    assert identity_of(decimal.Decimal) == identity_of(decimal.Decimal)
