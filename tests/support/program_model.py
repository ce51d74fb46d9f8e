"""Random UDF programs as data: what a program declares and does, and what it is run on.

A program is lawful by construction: each buffer collects contributions of pixels by an associative
operation, so that neither chunks nor tiles may show in a result.
"""

from dataclasses import dataclass, fields

import numpy as np

NAMES = ("a", "keys", "get", "data")  # any identifier may name a buffer
WEIGHTS = np.arange(1, 7)
POSTPROCESSED = {"sum", "scan", "last", "min", "max"}
CAP = 1


class Brief:
    """A repr without the fields that are as they were born."""

    def __repr__(self):
        shown = [
            f"{f.name}={getattr(self, f.name)!r}"
            for f in fields(self)
            if not _same(getattr(self, f.name), f.default)
        ]
        return f"{type(self).__name__}({', '.join(shown)})"

    def _repr_pretty_(self, printer, cycle):
        printer.text(repr(self))  # or hypothesis spells every field out


def _same(value, other):
    """Whether a field is at its default; arrays never are."""
    return type(value) is type(other) and not isinstance(value, np.ndarray) and value == other


@dataclass(frozen=True, repr=False)
class Buffer(Brief):
    """A buffer that collects contributions of pixels.

    Operations: `sum` (of bools: any), `min`, `max`, `xor`; `last` (frame) and `hash` (a pair,
    sensitive to every frame and to their order); `scan` (nav: the running sum, made by merge with
    the buffer "running"); `stamp` (nav: the positions that merge sees); `median` (single: of the
    first plain nav buffer, made by merge_all). `last`, `hash` and `scan` need chunks that follow
    each other in navigation order.
    """

    name: str
    kind: str = "nav"
    op: str = "sum"
    of: str = "value"
    """Contribution: `value`, `square`, `one`, `where` (value times position), `place` (value times
    pixel number)."""
    dtype: str = "int64"
    extra: tuple[int, ...] = ()
    use: str | None = None
    fill: object = None


@dataclass(frozen=True, repr=False)
class Output(Brief):
    """What get_results gives.

    Of the same name: `pass`, `double`, `flat`, and `masked`, `valid`, `invalid` with a mask.
    Of a name of its own, result_only: `mean` (by number of frames), `total` (single, of nav),
    `full` (numbers in nav shape), `here` (positions of the rows).
    """

    name: str
    form: str = "pass"
    source: str = "a"


@dataclass(frozen=True, repr=False)
class Program(Brief):
    buffers: tuple[Buffer, ...]
    outputs: tuple[Output, ...] = ()
    method: str = "frame"
    merge: str = "default"
    """`default`; `merge`; `assigns` (merge_assigns_nav); `all` (merge_all, a tree); `once`
    (merge_all in one step); `both` (merge_all, and a merge that must not run)."""
    prefers: str = "bool"
    """Preferred input dtype; bool leaves that of the data."""
    postprocess: bool = False
    factor: int = 1
    lazy_weights: bool = False
    depth: float = np.inf
    split_every: int | bool | None = None
    whole_frames: bool = False
    contiguous_nav: bool = False
    writable_input: bool = False
    elementwise_results: bool = False

    def buffer(self, name):
        return next(b for b in self.buffers if b.name == name)

    def median_of(self):
        plain = [b for b in self.buffers if b.kind == "nav" and not b.extra]
        return next((b for b in plain if not b.dtype.startswith("complex")), None)


@dataclass(frozen=True, repr=False)
class Case(Brief):
    programs: tuple[Program, ...]
    shape: tuple[int, ...]
    sig_dims: int
    chunks: tuple[tuple[int, ...], ...]
    dtype: str = "uint8"
    roi: object = None
    tile_bytes: int = 1 << 20
    split_every: int | bool | None = None
    seed: int = 0

    @property
    def nav(self):
        return self.shape[: len(self.shape) - self.sig_dims]

    @property
    def sig(self):
        return self.shape[len(self.shape) - self.sig_dims :]

    def array(self):
        random = np.random.default_rng(self.seed)
        dtype = np.dtype(self.dtype)
        low = 0 if dtype.kind in "ub" else -40
        values = random.integers(low, 2 if dtype.kind == "b" else 40, self.shape)
        if dtype.kind in "fc":
            values = values / 8
        if dtype.kind == "c":
            values = values + 1j * random.integers(-40, 40, self.shape) / 8
        return values.astype(dtype)


def cast(values, dtype):
    """Return values in another dtype: complex by the real part, to integers modulo."""
    values, dtype = np.asarray(values), np.dtype(dtype)
    if values.dtype.kind == "c" and dtype.kind != "c":
        values = values.real
    if values.dtype.kind == "f" and dtype.kind in "ui":
        values = np.trunc(values).astype("int64")
    return values.astype(dtype)


def neutral(buffer):
    dtype = np.dtype(buffer.dtype)
    if buffer.op == "hash":
        return np.array([0, 1], dtype=dtype)
    if buffer.op not in ("min", "max"):
        return np.zeros((), dtype)
    if dtype.kind == "b":
        return np.array(buffer.op == "min")
    if dtype.kind == "f":
        return np.array(np.inf if buffer.op == "min" else -np.inf, dtype)
    info = np.iinfo(dtype)
    return np.array(info.max if buffer.op == "min" else info.min, dtype)
