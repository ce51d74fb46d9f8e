"""The types of a user's script: mypy finds no fault in it, and the mistakes of another one."""

from pathlib import Path

import pytest

from fences import read_fences
from making import run_python

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "user-guide" / "writing" / "basics.md"
STRICT = ("--strict", "--untyped-calls-exclude=dask", "--follow-imports=silent")
MORE = """
from pathlib import Path
from typing import Any, assert_type

import xarray as xr
from matplotlib.figure import Figure
from udfdask.analyses import find_disks, fit_lattice
from udfdask.base.types import AnyArray
from udfdask.dask import ArrayAccessor
from udfdask.geometry.chunk_grid import BoolArray
from udfdask.hyperspy import SignalResult, UDFAccessor
from udfdask.io import open_file
from udfdask.results.result import Result
from udfdask.results.result_array import ResultArray
from udfdask.udfs import SumSigUDF, SumUDF
from udfdask.xarray import DataArrayUDF

Lazy = Result[da.Array]
Done = Result[ResultArray]
assert_type(result, Lazy)
assert_type(result["mean"], da.Array)
assert_type(result.persist(), Lazy)
assert_type(result.compute(), Done)
assert_type(done, Done)
assert_type(done["mean"], ResultArray)
assert_type(dict(done.items()), dict[str, ResultArray])
total, sums = ud.run_udf(x, [SumUDF(), SumSigUDF()])
assert_type(total, Lazy)
assert_type(ud.run_udf(x, {"total": SumUDF()}), dict[str, Lazy])
assert_type(ud.compute(total, sums), tuple[Done, ...])
assert_type(ud.persist(total, sums), tuple[Lazy, ...])
assert_type(ud.compute([total, sums], progress=True), tuple[Any, ...])
brightest = sums["intensity"].max()
assert_type(ud.compute(brightest), tuple[Any, ...])
assert_type(ud.compute(total, brightest), tuple[Any, ...])
assert_type(done["mean"].data, AnyArray)
assert_type(done.plot(), Figure)
assert_type(result.to_xarray(), xr.Dataset)
assert_type(ud.save_results("sums.nc", sums), Path)
assert_type(ud.map_frames(x, np.max, axis=0), da.Array)
assert_type(ud.map_frames(x, np.max, output_names=("y", "x")), Lazy)
opened = open_file("scan.npy", chunks=8)
assert_type(opened.array, da.Array)
assert_type(opened.to_xarray(), xr.DataArray)
assert_type(fit_lattice(find_disks(opened, opened)), Lazy)
for snapshot in ud.run_udf_iter(opened, SumUDF()):
    assert_type(snapshot.buffers[0]["intensity"], ResultArray)
    assert_type(snapshot.damage, BoolArray)

array = ArrayAccessor(x)
assert_type(array.run_udf(SumUDF(), sig_dims=2), Lazy)
assert_type(array.run_udf([SumUDF()]), tuple[Lazy, ...])
assert_type(array.map_frames(np.max), da.Array)
for of_array in array.run_udf_iter(SumUDF()):
    assert_type(of_array.buffers[-1], Done)
array.run_udf(SumUDF(), sig_dim=2)  # type: ignore[call-overload]

labeled = DataArrayUDF(opened.to_xarray())
assert_type(labeled.run_udf(SumUDF(), ("ky", "kx"), rename={"intensity": "sum"}), xr.Dataset)
assert_type(labeled.run_udf({"sum": SumUDF()}), dict[str, xr.Dataset])
assert_type(labeled.map_frames(np.max), xr.DataArray)
assert_type(labeled.map_frames(np.max, output_names=["y", "x"]), xr.Dataset)
for of_labeled in labeled.run_udf_iter(SumUDF()):
    assert_type(of_labeled.buffers[0], xr.Dataset)
    assert_type(of_labeled.damage, xr.DataArray)

signal = UDFAccessor(None)
assert_type(signal.run_udf(SumUDF()), SignalResult)
assert_type(signal.run_udf([SumUDF()], roi=(0, 0)), tuple[SignalResult, ...])
assert_type(signal.map_frames(np.max, output_names=["y", "x"]), SignalResult)
for of_signal in signal.run_udf_iter(SumUDF()):
    assert_type(of_signal.buffers[0], SignalResult)

plain: ud.Result = total
assert_type(plain["intensity"], Any)


class Wrong(ud.UDF):
    def get_result_buffers(self) -> dict[str, int]:  # type: ignore[override]
        return {}

    def merge(self, dest: int, src: int) -> None: ...  # type: ignore[override]


result["mean"].raw_data  # type: ignore[attr-defined]
self_made = ud.UDF().buffer(kind="frame")  # type: ignore[arg-type]
"""


@pytest.mark.full
def test_mypy_knows_the_types_of_the_script_on_the_page(tmp_path):
    """An ignored error that mypy does not find is an error, too."""
    (script,) = [fence.text for fence in read_fences(PAGE) if "# weighted.py" in fence.text]
    (tmp_path / "weighted.py").write_text(script)
    (tmp_path / "more.py").write_text(script + MORE)
    where = {"cwd": tmp_path, "env": {"MYPYPATH": str(ROOT)}}
    run_python("-m", "mypy", *STRICT, "weighted.py", "more.py", **where)
    done = run_python("weighted.py", cwd=tmp_path)
    assert done.stdout == "1.000\n"
