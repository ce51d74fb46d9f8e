"""Compile kernels on their first call with each dtype, and keep them on disk.

When a file of a kernel's folder or of this one changes, all its kernels are compiled again.

numba's own cache raises an error if its folder is full or becomes read-only, which would fail a
task that writes nothing. It also numbers its files: two processes that compile at the same time may
both write number 1, and on a full disk a new index may refer to an old file. Here the name of a
file is derived from the key of its contents, and an incomplete file is not used.
"""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import pickle
import uuid
import warnings
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numba
from numba import extending, types
from numba.core.caching import FunctionCache, NullCache
from numba.core.runtime.nrt import rtsys
from numba.core.serialize import dumps
from numba.np import arrayobj

from udfdask.errors import UDFWarning

DIGEST = hashlib.sha256().digest_size
"""Size of the checksum at the beginning of a file."""


class KernelCache(FunctionCache):
    """The compiled versions of one kernel on disk."""

    def __init__(self, function: Callable[..., Any], options: str) -> None:
        super().__init__(function)  # type: ignore[no-untyped-call]
        folder = Path(function.__code__.co_filename).parent
        # the first part is bytes or, up to numba 0.65, a time and a size
        stamp = repr(self._impl.locator.get_source_stamp()) + _stamp_of(folder) + options
        files: Any = KernelFiles(Path(self._cache_path), self._impl.filename_base, stamp)
        self._cache_file = files

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled version for a signature, None if there is no usable one."""
        # numba's own method first loads all that it needs to compile, which takes 0.3 s in each
        # process. Compiled code only needs the runtime.
        rtsys.initialize(target_context)
        try:
            return self._load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        except OSError:  # the folder cannot be read: compile again
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save a compiled version if possible, otherwise warn once."""
        if _told:
            return
        try:
            super().save_overload(sig, data)  # type: ignore[no-untyped-call]
        except OSError as error:
            _tell_once(f"in {self._cache_path}: {error}")


@lru_cache(maxsize=8)
def _stamp_of(folder: Path) -> str:
    """Return a digest of all modules whose kernels may be called; numba only looks at one file."""
    digest = hashlib.sha256()
    for place in (folder, Path(__file__).parent):
        for file in sorted(place.glob("*.py")):
            digest.update(file.read_bytes())
    return digest.hexdigest()


class NoCache(NullCache):
    """The cache of a kernel if no folder is writable."""

    def save_overload(self, sig: Any, data: Any) -> None:
        """Warn once that kernels are not saved."""
        _tell_once("in any folder: none is writable")


class KernelFiles:
    """The files of a kernel in a folder, one for each compiled version; names begin with `base`.

    The stamp identifies the source and the options: files with another stamp are outdated.
    """

    def __init__(self, folder: Path, base: str, stamp: str) -> None:
        self._folder = folder
        self._base = base
        self._stamp = hashlib.sha256(f"{stamp} {numba.__version__}".encode()).hexdigest()[:16]

    def load(self, key: Any) -> Any:
        """Return the data of a key, None if there is no file or the file is damaged."""
        try:
            content = self._path(key).read_bytes()
        except FileNotFoundError:
            return None
        data = content[DIGEST:]
        if hashlib.sha256(data).digest() != content[:DIGEST]:
            return None  # the kernel is compiled again and overwrites the file
        return pickle.loads(data)

    def save(self, key: Any, data: Any) -> None:
        """Write the data of a key atomically, and remove outdated files."""
        content = dumps(data)  # type: ignore[no-untyped-call]
        path = self._path(key)
        scratch = path.with_name(f"{path.name}.tmp.{uuid.uuid4().hex[:16]}")
        try:
            scratch.write_bytes(hashlib.sha256(content).digest() + content)
            scratch.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                scratch.unlink()
            raise
        self._remove(lambda name: not name.startswith(f"{self._base}.{self._stamp}."))

    def flush(self) -> None:
        """Remove all files of the kernel."""
        self._remove(lambda name: True)

    def _path(self, key: Any) -> Path:
        """Return the file of a key. numba's keys consist of signature, processor and code."""
        digest = hashlib.sha256(repr(key).encode()).hexdigest()[:32]
        return self._folder / f"{self._base}.{self._stamp}.{digest}.nbc"

    def _remove(self, selects: Callable[[str], bool]) -> None:
        for path in self._folder.glob(f"{self._base}.*.nbc"):
            if selects(path.name):
                with contextlib.suppress(OSError):
                    path.unlink()


_told: list[str] = []
"""Why kernels cannot be saved, once it is known."""


def _tell_once(reason: str) -> None:
    """Warn once per process that kernels cannot be saved; numba compiles one kernel at a time."""
    if not _told:
        _told.append(reason)
        warnings.warn(
            f"compiled kernels cannot be saved {reason}. The run continues, but each process"
            " compiles them again, which takes seconds: set NUMBA_CACHE_DIR to a folder with"
            " free space",
            UDFWarning,
            stacklevel=2,
        )


def cache_of(function: Callable[..., Any], options: str) -> Any:
    """Return the cache of a kernel in the folder that numba chooses, such as `NUMBA_CACHE_DIR`."""
    try:
        return KernelCache(function, options)
    except (RuntimeError, OSError):  # no writable folder, or no source file
        in_file = Path(function.__code__.co_filename).is_file()
        return NoCache() if in_file else NullCache()


def _compiler(
    *fastmath: str, inner: bool = False, **options: bool
) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that compiles functions without the GIL; `inner` ones are not saved."""
    # no C code calls kernels: a sum of frames compiles in 1.2 instead of 1.45 s without the
    # wrapper; kernels compile in 0.8 of the time if inner functions have none for Python either
    flags = {"no_cfunc_wrapper": True, "no_cpython_wrapper": inner, **options}
    njit: Any = numba.njit
    compiler = njit(error_model="numpy", nogil=True, fastmath=set(fastmath), **flags)

    def compiled(function: Callable[..., Any]) -> Any:
        dispatcher = compiler(function)
        if not inner:
            dispatcher._cache = cache_of(function, " ".join(sorted(fastmath)))
        return dispatcher

    return compiled


kernel = _compiler()
"""Compile a function of arrays."""

lean_kernel = _compiler(_nrt=False)
"""Do the same without counting references to arrays, so that the function cannot make arrays.

It compiles in 0.85 of the time. Centers of mass took 1.04 times as long, other kernels less time.
"""

contracting_kernel = _compiler("contract")
"""Allow `a * b + c` with a single rounding, which is faster and at least as accurate."""

reordering_kernel = _compiler("reassoc", "nsz")
"""Allow additions in any order, which sums in vector registers need."""

summing_kernel = _compiler("contract", "nsz", "reassoc")
"""Allow both. Unlike `fastmath=True`, this does not change NaN and infinity."""

inner_kernel = _compiler("contract", inner=True)
"""Compile a function that only kernels call. It is stored as a part of them."""

lean_inner_kernel = _compiler("contract", inner=True, _nrt=False)
"""Do the same for a function that a `lean_kernel` calls."""

pasted_inner_kernel = _compiler("contract", inner=True, _nrt=False, forceinline=True)
"""Do the same, and inline it: a process that compiles a kernel runs the copy of an inner function
that was compiled first, with other products fused than in the copy that it saves with the kernel.
"""

rounding_inner_kernel = _compiler(inner=True)
"""Compile an inner function that rounds each product: `a * n - b * m` is 0 if both are equal."""

intrinsic: Any = extending.intrinsic
"""Compile a function whose body is LLVM code. It gets the types of its arguments, not values."""

_make_array: Any = arrayobj.make_array


def statement(body: Callable[..., None]) -> Any:
    """Compile a function whose body is LLVM code, and which returns nothing.

    The body gets the LLVM builder, the numba types of all arguments, and their values: pointers to
    the first elements of arrays. All integers are `intp`.
    """

    def compiled(context: Any, *arguments: Any) -> Any:
        kinds = [types.intp if isinstance(one, types.Integer) else one for one in arguments]

        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            plain = [
                _make_array(kind)(context, builder, value).data
                if isinstance(kind, types.Array)
                else value
                for kind, value in zip(signature.args, values, strict=True)
            ]
            body(builder, signature.args, *plain)
            return context.get_dummy_value()

        return types.void(*kinds), generate

    # numba matches arguments with the names of the parameters
    names = list(inspect.signature(body).parameters.values())
    compiled.__signature__ = inspect.Signature(names[1:])  # type: ignore[attr-defined]
    return intrinsic(compiled)
