"""The UDF that carries a program out; its class is made for each program and travels by value."""

import functools

import dask.array as da
import numpy as np

import udfdask as ud
from program_model import CAP, POSTPROCESSED, WEIGHTS, cast, neutral

UFUNCS = {
    "sum": np.add,
    "scan": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "xor": np.bitwise_xor,
}


def combine(buffer, one, other):
    if buffer.op == "last":
        return other
    if buffer.op == "hash":  # (h, p) after (g, q) is (g p + h, q p)
        value = one[..., :1] * other[..., 1:] + other[..., :1]
        return np.concatenate([value, one[..., 1:] * other[..., 1:]], axis=-1)
    return UFUNCS[buffer.op](one, other)


class Programmed(ud.UDF):
    def __init__(self, program, weights, options):
        super().__init__(program=program, weights=weights, options=options)
        self.program = program

    def get_preferred_input_dtype(self):
        return self.USE_NATIVE_DTYPE if self.program.prefers == "bool" else self.program.prefers

    def get_tiling_preferences(self):
        return {"depth": self.program.depth, "total_size": self.TILE_SIZE_MAX}

    def get_result_buffers(self):
        declared = {
            b.name: self.buffer(b.kind, b.extra, b.dtype, use=b.use, fill_value=b.fill)
            for b in self.program.buffers
        }
        for output in self.program.outputs:
            if output.name not in declared:
                declared[output.name] = self._declare(output)
        return declared

    def _declare(self, output):
        if output.form in ("full", "here"):
            return self.buffer("nav", dtype="int64", use="result_only")
        source = self.program.buffer(output.source)
        kind = "single" if output.form == "total" else source.kind
        dtype = "complex128" if source.dtype.startswith("complex") else "float64"
        return self.buffer(kind, source.extra, dtype, use="result_only")

    def get_task_data(self):
        sig = self.meta.dataset_shape.sig
        return {"places": 1 + np.arange(sig.size).reshape(sig)}

    def preprocess(self):
        for b in self.program.buffers:
            getattr(self.results, b.name)[...] = neutral(b)

    def postprocess(self):
        if not self.program.postprocess:
            return
        for b in self.program.buffers:
            view = getattr(self.results, b.name)
            if b.kind == "nav":
                assert len(view) == self.meta.partition_shape[0] == len(self.meta.coordinates)
            if b.op in ("min", "max"):
                view[...] = UFUNCS[b.op](view, np.array(CAP, dtype=b.dtype))
            elif b.op in POSTPROCESSED:
                view += view.copy()

    def positions(self):
        nav = tuple(self.meta.dataset_shape.nav)
        here = self.meta.coordinates
        return np.ravel_multi_index(tuple(here.T), nav) if nav else np.zeros(len(here), "int64")

    def add(self, block, by_frame=False):
        where = self.meta.slice
        assert block.dtype == self.meta.input_dtype
        assert tuple(where.shape) == block.shape
        if self.program.whole_frames or self.program.method != "tile":
            assert tuple(where.shape.sig) == tuple(self.meta.dataset_shape.sig)
        if self.program.contiguous_nav:
            assert where.origin[0] >= 0
        if self.program.writable_input:
            block[...] = ~block if block.dtype == bool else block + block
        for number, b in enumerate(self.program.buffers):
            if b.op in ("stamp", "median"):
                continue
            view = getattr(self.results, b.name)
            value = self._collected(b, block)
            before = view.reshape((1, *b.extra)) if by_frame and b.kind == "nav" else view
            after = combine(b, before, value).reshape(view.shape)
            if number % 2:
                setattr(self.results, b.name, after)
            else:
                view[...] = after

    def _collected(self, b, block):
        rows, sig = (0,), tuple(range(1, block.ndim))
        values = self._contributions(b, block)
        if b.op in ("last", "hash"):
            if b.kind == "single":
                values = np.add.reduce(values, axis=sig, dtype=values.dtype)
            return values[-1] if b.op == "last" else _hash(values)
        axis = {"nav": sig, "sig": rows, "single": rows + sig}[b.kind]
        return UFUNCS[b.op].reduce(values, axis=axis, dtype=values.dtype)

    def _contributions(self, b, block):
        values = cast(block, b.dtype)
        if b.of == "square":
            values = values * values
        elif b.of == "one":
            values = np.ones_like(values)
        elif b.of == "where":
            column = (len(values), *(1 for _ in values.shape[1:]))
            values = values * cast(1 + self.positions(), b.dtype).reshape(column)
        elif b.of == "place":
            places = self.task_data["places"][self.meta.sig_slice.get()]
            values = values * cast(places, b.dtype)
        values = values * np.full_like(values, self.params.options["factor"])
        if b.op == "hash" or not b.extra:
            return values
        weights = cast(np.asarray(self.params.weights)[: int(np.prod(b.extra))], b.dtype)
        return values[(..., *(None for _ in b.extra))] * weights.reshape(b.extra)


def _hash(values):
    """Return hash and power of a sequence of arrays, shape (*sig, 2)."""
    state = np.stack([np.zeros_like(values[0]), np.ones_like(values[0])], axis=-1)
    base = np.array(31, dtype=values.dtype)
    for value in values:
        state = np.concatenate(
            [state[..., :1] * base + value[..., None], state[..., 1:] * base], -1
        )
    return state


class ByFrame:
    def process_frame(self, frame):
        self.add(frame[np.newaxis], by_frame=True)


class ByTile:
    def process_tile(self, tile):
        self.add(tile)


class ByPartition:
    def process_partition(self, partition):
        self.add(partition)


class Merges:
    def merge(self, dest, src):
        rows = np.arange(self.meta.get_valid_nav_mask().size)[self.meta.slice.get(nav_only=True)]
        assert not self.meta.get_valid_nav_mask()[rows].any()
        for b in self.program.buffers:  # scans first: they need the running sum up to here
            if b.op == "scan":
                setattr(dest, b.name, dest.running + np.cumsum(getattr(src, b.name)))
        for b in self.program.buffers:
            into, new = getattr(dest, b.name), getattr(src, b.name)
            if b.kind == "nav":
                assert len(into) == len(new) == len(rows)
            if b.op == "stamp":
                into[:] = self.positions()
            elif b.kind == "nav" and self.merge_assigns_nav:
                into[:] = new
            elif b.op != "scan":
                into[...] = combine(b, into, new)


class MustNotMerge:
    def merge(self, dest, src):
        raise AssertionError("merge_all wins")


class MergesAll:
    def merge_all(self, ordered_results):
        lengths = [where.shape[0] for where in ordered_results]
        merged = {}
        for b in self.program.buffers:
            parts = [getattr(p, b.name) for p in ordered_results.values()]
            if b.kind == "nav":
                assert lengths == [len(p) for p in parts]
                merged[b.name] = np.concatenate(parts)
            elif b.op != "median":
                merged[b.name] = functools.reduce(functools.partial(combine, b), parts)
        for b in self.program.buffers:
            if b.op == "median":
                merged[b.name] = np.median(merged[self.program.median_of().name].astype("float64"))
        return merged


class Finishes:
    def get_results(self):
        return {o.name: self._output(o) for o in self.program.outputs}

    def _output(self, output):
        nav = self.meta.dataset_shape.nav
        if output.form == "full":
            return np.arange(nav.size).reshape(nav)
        if output.form == "here":
            return self.positions()
        value = getattr(self.results, output.source)
        if output.form == "double":
            return value + value
        if output.form == "flat":
            return value.reshape(-1)
        if output.form == "mean":
            wide = value.astype("complex128" if value.dtype.kind == "c" else "float64")
            return wide / max(1, int(self.meta.get_valid_nav_mask(full_nav=True).sum()))
        if output.form == "total":
            return value.sum(axis=0, dtype="complex128" if value.dtype.kind == "c" else "float64")
        masks = {"masked": value != 0, "valid": True, "invalid": False}
        return self.with_mask(value, mask=masks[output.form]) if output.form in masks else value


METHODS = {"frame": ByFrame, "tile": ByTile, "partition": ByPartition}
MERGES = {
    "default": (),
    "merge": (Merges,),
    "assigns": (Merges,),
    "all": (MergesAll,),
    "once": (MergesAll,),
    "both": (MergesAll, MustNotMerge),
}
ATTRIBUTES = ("whole_frames", "contiguous_nav", "writable_input", "elementwise_results")


def make_udf(program, *, lazy=True):
    """Return the UDF of a program; its class has no name on workers."""
    finishes = (Finishes,) if program.outputs else ()
    bases = (METHODS[program.method], *MERGES[program.merge], *finishes, Programmed)
    attributes = {name: True for name in ATTRIBUTES if getattr(program, name)}
    if program.merge == "assigns":
        attributes["merge_assigns_nav"] = True
    if program.merge == "once" or program.split_every is not None:
        attributes["split_every"] = False if program.merge == "once" else program.split_every
    cls = type("".join(base.__name__ for base in bases), bases, attributes)
    weights = da.from_array(WEIGHTS, chunks=4) if lazy and program.lazy_weights else WEIGHTS
    return cls(program=program, weights=weights, options={"factor": program.factor})
