"""``--udf file.py:Class`` and ``--udf module:Class``: the user's own code, and LiberTEM's."""

import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from commands import call, results_of, run_program
from udfdask.cli import main

CODE = '''
import dataclasses
import numpy as np
import udfdask as ud
from {helper} import top

@dataclasses.dataclass
class Factor:
    by: "float" = 1.0

class PeakUDF(ud.UDF):
    """The highest value of each frame.

    Parameters
    ----------
    scale : float
        Multiplies it.
    """

    def __init__(self, scale=1, shift=0):
        super().__init__(scale=scale, shift=shift)

    def get_result_buffers(self):
        return {{"peak": self.buffer(kind="nav", dtype="float64")}}

    def process_frame(self, frame):
        factor = Factor(self.params.scale)
        self.results.peak[:] = top(frame) * factor.by + self.params.shift

class Needs(ud.UDF):
    def __init__(self, first, second, third=3):
        super().__init__(first=first, second=second, third=third)

class Constant(ud.UDF):
    def get_result_buffers(self):
        return {{"value": self.buffer(kind="nav", dtype="float64")}}

    def process_frame(self, frame):
        self.results.value[:] = self.params.value

def peak(frame):
    return frame.max()

ready = PeakUDF(scale=10)
'''


@pytest.fixture
def folder(tmp_path, file, monkeypatch):
    """The working folder with a scan and code. What is imported from it is forgotten afterwards."""
    name = f"own{tmp_path.name.replace('-', '_')}"[-40:].replace("[", "").replace("]", "")
    (tmp_path / f"help_{name}.py").write_text("def top(frame):\n    return frame.max()\n")
    (tmp_path / f"{name}.py").write_text(CODE.format(helper=f"help_{name}"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    known = set(sys.modules)
    yield name
    for each in set(sys.modules) - known:
        if name in each:
            del sys.modules[each]


@pytest.mark.parametrize("form", ["{}.py", "{}"])
def test_a_class_in_the_current_folder(folder, values, form):
    place = form.format(folder)
    got = results_of("--udf", f"{place}:PeakUDF:scale=2,shift=1", "--udf", "sumsig")
    np.testing.assert_array_equal(got["peak_peak"], values.max(axis=(2, 3)) * 2 + 1)
    np.testing.assert_array_equal(got["sumsig_intensity"], values.sum(axis=(2, 3)))


def test_several_of_one_file(folder, values):
    file = f"{folder}.py"
    got = results_of(
        *("--udf", f"{file}:PeakUDF", "--udf", f"{file}:PeakUDF:scale=3", "--udf", f"{file}:ready"),
        *("--udf", f"{file}:Constant:value=7"),
        *("--udf", f"own={file}:PeakUDF", "--udf", "disk:r=2"),
    )
    peaks = values.max(axis=(2, 3)).astype(float)
    np.testing.assert_array_equal(got["peak_peak"], peaks)
    np.testing.assert_array_equal(got["own_peak"], peaks)
    np.testing.assert_array_equal(got["peak_2_peak"], 3 * peaks)
    np.testing.assert_array_equal(got["peak_3_peak"], 10 * peaks)
    np.testing.assert_array_equal(got["constant_value"], np.full((6, 8), 7.0))


def test_classes_of_libertem(folder, values):
    pytest.importorskip("libertem", reason="libertem is in the extra of that name")
    got = results_of(
        *("--udf", "libertem.udf.sum:SumUDF:dtype=float64", "--udf", "sum:dtype=float64"),
        *("--udf", "libertem.udf.stddev:StdDevUDF", "--udf", f"{folder}:PeakUDF"),
    )
    np.testing.assert_array_equal(got["sum_intensity"], values.sum(axis=(0, 1)))
    np.testing.assert_array_equal(got["sum_2_intensity"], values.sum(axis=(0, 1)))
    np.testing.assert_allclose(got["stddev_std"], values.std(axis=(0, 1)), rtol=1e-5)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{0}.py:Peek", "has no attribute 'Peek'"),
        ("{0}:peak", "is not a UDF; a function of a frame is called by auto:f={0}:peak"),
        ("{0}.py:Needs:first=1", "missing a required argument: 'second' (needs takes"),
        ("{0}.py:ready:scale=3", "it is a UDF that has its parameters"),
        ("missing.py:Peak", "there is no file missing.py"),
        ("missing:Peak", "No module named 'missing'"),
    ],
)
def test_mistakes(folder, text, message):
    output = call("run", "scan.npy", "--udf", text.format(folder), code=2)
    assert message.format(folder) in output


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("x = 1\ny = x / 0\n", "line 2, in <module> y = x / 0"),
        ("def f(:\n", "SyntaxError"),
        ("import nothing_of_this_name\n", "ModuleNotFoundError: No module named 'nothing_of"),
    ],
)
def test_code_that_fails(folder, code, message):
    name = f"bad_{folder}"
    Path(f"{name}.py").write_text(code)
    for place in (f"{name}.py", name):
        output = call("explain", "scan.npy", "--udf", f"{place}:Peak", code=2)
        assert message in output


def test_a_run_that_fails_shows_the_line_of_the_user(folder):
    code = "import udfdask\nclass Bad(udfdask.UDF):\n    def get_result_buffers(self):\n"
    code += "        return {'a': self.buffer(kind='nav')}\n    def process_frame(self, frame):\n"
    Path(f"fails_{folder}.py").write_text(f"{code}        1 / 0\n")
    outcome = CliRunner().invoke(main, ["run", "scan.npy", "--udf", f"fails_{folder}.py:Bad"])
    assert outcome.exit_code == 1
    output = outcome.output
    lines = re.findall(r'File ".*?(\w+)\.py", line (\d+)', output)
    assert lines == [(f"fails_{folder}", "6")]
    assert "ZeroDivisionError: division by zero" in output
    assert "raised in Bad.process_frame at navigation coordinates (0, 0)" in output


def test_a_description(folder):
    output = call("udfs", f"{folder}.py:PeakUDF")
    assert "The highest value of each frame." in output
    assert "Multiplies it." in output
    assert call("udfs", f"{folder}:Needs") == "needs: first, second, third\n"
    assert "has no attribute 'Peek'" in call("udfs", f"{folder}:Peek", code=2)


@pytest.mark.full
def test_a_cluster_that_does_not_know_the_folder(folder, values, tmp_path_factory):
    """Workers that were started elsewhere get the class and what its module imports beside it."""
    distributed = pytest.importorskip("distributed", reason="distributed is an extra")
    here = Path.cwd()
    os.chdir(tmp_path_factory.mktemp("elsewhere"))
    try:
        options = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": ":0"}
        with distributed.LocalCluster(**options, protocol="tcp") as cluster:
            with distributed.Client(cluster, set_as_default=False) as client:
                client.wait_for_workers(1)
            os.chdir(here)
            udf = f"{folder}.py:PeakUDF:scale=2"
            got = results_of("--udf", udf, "--scheduler", cluster.scheduler_address)
    finally:
        os.chdir(here)
    np.testing.assert_array_equal(got["peak_peak"], values.max(axis=(2, 3)) * 2)


@pytest.mark.full
def test_partial_results_of_own_code_are_found_again(folder):
    """The names of tasks are those of the first command, in a process of its own."""
    command = ["run", "scan.npy", "--cache", "kept", "--udf", f"{folder}.py:PeakUDF"]
    command += ["--no-progress", "--chunks", "2,3,-1,-1"]
    first, second = (run_program(*command) for _ in range(2))
    assert "done already" not in first.stdout, first.stderr
    assert "9 of 9 chunks are done already" in second.stdout, second.stderr
