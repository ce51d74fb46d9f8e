"""The types of a user's script: mypy finds no fault in it, and the mistakes of another one."""

from pathlib import Path

import pytest

from fences import read_fences
from making import run_python

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "user-guide" / "writing" / "basics.md"
STRICT = ("--strict", "--untyped-calls-exclude=dask", "--follow-imports=silent")
MORE = """
from typing import Any, assert_type

from udfdask.results.result import Result
from udfdask.results.result_array import ResultArray
from udfdask.udfs import SumSigUDF, SumUDF

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
