"""Names of UDFs are the same in every process, and never unique by accident."""

import inspect
import json
from pathlib import Path

import pytest

import udf_facts
import udf_zoo
import udfdask as ud
from making import run_python
from udfdask import udfs

pytestmark = pytest.mark.full

SCRIPT = """
import enum, functools, json, logging, sys, threading
sys.path[:0] = {folders!r}
import dask.array as da, numba, numpy as np
import udf_programs, udf_zoo
from pathlib import Path
from udf_facts import make_udfs
from udfdask.masks import DiskTemplate, MaskContainer, circular
from udfdask.base.names.naming import tokenize_value
from udfdask.plan.plan import make_plan
from udfdask.udfs import *

frame = dict(centerX=8, centerY=8, imageSizeX=16, imageSizeY=16)
masks = [functools.partial(circular, **frame, radius=3), lambda: np.ones((16, 16))]
builtins = [
    *make_udfs(Path()).values(), ApplyMasksUDF(masks), AutoUDF(lambda f: np.percentile(f, 3)),
]
x = da.zeros((4, 4, 16, 16), dtype="uint16", chunks=(2, 4, 16, 16))
found = {{}}
for k, udf in enumerate([*builtins, *(cls() for cls in udf_zoo.ZOO)]):
    def name():
        return make_plan(x, [udf], roi=np.s_[1:3]).token
    found[f"{{type(udf).__name__}} {{k}}"] = (name(), name())

log, lock = logging.getLogger(__name__), threading.Lock()

class Color(enum.Flag):
    RED = 1
    BLUE = 2

@functools.singledispatch
def single(a):
    return a
single("fills its cache")

@numba.njit(fastmath={{"nnan", "contract", "arcp"}})
def compiled(a):
    return a + 1
compiled(2)

def logged():
    with lock:
        log.debug("%s", Color.RED | Color.BLUE)

values = dict(
    logged=logged, members={{Color.RED, Color.BLUE}}, single=single, compiled=compiled,
    vectorized=np.vectorize(lambda a: a + 1), container=MaskContainer(masks),
    template=DiskTemplate(radius=2), types={{int, str, Color}}, module=udf_zoo,
)
for name, value in values.items():
    found[name] = (tokenize_value(value), tokenize_value(value))
print(json.dumps(found))
"""


def names(seed):
    """The names that a fresh interpreter finds, twice each."""
    script = SCRIPT.format(folders=[str(Path(m.__file__).parent) for m in (udf_zoo, udf_facts)])
    return json.loads(run_python("-c", script, env={"PYTHONHASHSEED": seed}).stdout)


def test_ordinary_things_have_one_name_in_all_processes():
    one, other = names("1"), names("2")
    unique = [what for what, (first, second) in one.items() if first != second]
    recording = [what for what in one if what.startswith("RecordUDF")]
    assert unique == recording  # each run writes its file anew
    assert [what for what, name in one.items() if other[what] != name] == recording
    tokens = [first for first, _ in one.values()]
    assert len(set(tokens)) == len(tokens)
    # nothing that users are given has been left out
    ready = {
        n for n in udfs.__all__ if inspect.isclass(c := getattr(udfs, n)) and issubclass(c, ud.UDF)
    }
    assert ready | {cls.__name__ for cls in udf_zoo.ZOO} <= {what.split()[0] for what in one}
