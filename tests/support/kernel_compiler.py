"""Has the kernels of udfdask compiled by another process, which is replaced now and then.

LLVM keeps 2 to 3 MiB for each kernel and dtype that a process compiles, and never gives them back;
what is loaded from numba's cache on disk takes 0.4 MiB. The tests need some thousand of them.
"""

import contextlib
import importlib
import multiprocessing
import threading
from concurrent.futures import ProcessPoolExecutor

import pytest
from numba.core.errors import NumbaError

from udfdask.kernels.numba_internals.compile import KernelCache

KERNELS_PER_PROCESS = 25
"""Until then it has grown to a quarter of a gigabyte."""


def compile_kernel(module, name, signature):
    """Leave a kernel in the cache on disk; runs in the other process."""
    with contextlib.suppress(NumbaError):  # then the test meets the error itself
        getattr(importlib.import_module(module), name).compile(signature)


class Compiler:
    """The other process, started when there is something to compile."""

    def __init__(self):
        self._lock = threading.Lock()
        self._process = None
        self._compiled = 0

    def compile(self, *kernel):
        with self._lock:
            # not max_tasks_per_child, with which executors of Python 3.11 may hang
            if self._compiled % KERNELS_PER_PROCESS == 0:
                self.close()
                self._process = ProcessPoolExecutor(
                    1, mp_context=multiprocessing.get_context("spawn")
                )
            self._compiled += 1
            self._process.submit(compile_kernel, *kernel).result()

    def close(self):
        if self._process is not None:
            self._process.shutdown()


def pytest_configure(config):
    compiler, patch = Compiler(), pytest.MonkeyPatch()
    load = KernelCache.load_overload

    def load_or_compile(self, signature, target):
        found = load(self, signature, target)
        function = self._py_func
        if found is None and function.__module__.startswith("udfdask."):
            compiler.compile(function.__module__, function.__name__, signature)
            found = load(self, signature, target)
        return found

    patch.setattr(KernelCache, "load_overload", load_or_compile)
    config.add_cleanup(patch.undo)
    config.add_cleanup(compiler.close)
