"""What udfdask.kernels.numba_internals takes from numba that numba does not document.

These tests ran on numba 0.65 and 0.68. With another version, run them and all of `tests/kernels`,
and move the limits of numba in pyproject.toml.
"""

import inspect
import pickle

import numba
import pytest
from numba import types
from numba.core import cgutils
from numba.core.caching import FunctionCache, NullCache
from numba.core.registry import cpu_target
from numba.core.runtime.nrt import rtsys
from numba.core.serialize import dumps
from numba.np import arrayobj

FIRST, LAST = (0, 65), (0, 68)
"""The versions on which these tests ran."""


def plain(x):
    return x


def test_the_version_is_known():
    version = tuple(int(part) for part in numba.__version__.split(".")[:2])
    assert FIRST <= version <= LAST


def test_the_cache_of_a_function():
    cache = FunctionCache(plain)
    assert cache._impl.locator.get_source_stamp()
    assert cache._impl.filename_base.startswith("test_numba_internals.plain")
    assert cache._cache_path
    assert list(inspect.signature(cache._load_overload).parameters) == ["sig", "target_context"]
    assert NullCache().save_overload(None, None) is None
    assert pickle.loads(dumps({"a": 1})) == {"a": 1}
    assert list(inspect.signature(rtsys.initialize).parameters) == ["ctx"]


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("alloca_once", ["builder", "ty"]),
        ("alloca_once_value", ["builder", "value"]),
        ("for_range", ["builder", "count"]),
        ("for_range_slice", ["builder", "start", "stop", "step"]),
        ("get_or_insert_function", ["module", "fnty", "name"]),
        ("unpack_tuple", ["builder", "tup"]),
    ],
)
def test_builders_of_loops_and_values(name, parameters):
    found = inspect.signature(getattr(cgutils, name)).parameters
    assert list(found)[: len(parameters)] == parameters


def test_arrays_and_the_vectors_of_the_processor():
    assert callable(arrayobj.make_array(types.Array(types.float32, 1, "C")))
    triple, cpu, features = cpu_target.target_context.codegen().magic_tuple()
    assert all(isinstance(text, str) for text in (triple, cpu, features))
