"""What a program must give, written down in NumPy over all frames at once; knows no UDF."""

from dataclasses import dataclass

import numpy as np

from program_model import CAP, POSTPROCESSED, WEIGHTS, cast, neutral


@dataclass
class Expected:
    value: np.ndarray
    raw: np.ndarray
    mask: np.ndarray


class Oracle:
    def __init__(self, case, program):
        self.case, self.program = case, program
        self.n_frames = int(np.prod(case.nav))
        self.roi = np.ones(case.nav, bool) if case.roi is None else np.asarray(case.roi)
        self.positions = np.flatnonzero(self.roi.reshape(-1))
        data = case.array().reshape((self.n_frames, *case.sig))[self.positions]
        dtype = np.result_type(data.dtype, np.dtype(program.prefers)).newbyteorder("=")
        self.frames = data.astype(dtype)
        if program.writable_input:
            self.frames = ~self.frames if dtype.kind == "b" else self.frames * 2

    def results(self):
        program = self.program
        merged = {b.name: self._merged(b) for b in program.buffers}
        done = {
            b.name: self._expected(merged[b.name], b.kind, b.extra, b.fill)
            for b in program.buffers
            if b.use != "private"
        }
        for output in program.outputs:
            done[output.name] = self._output(output, merged)
        return done

    def _merged(self, b):
        n = len(self.frames)
        if b.op == "stamp":
            return self.positions.astype("int64")
        if b.op == "median":
            source = self._merged(self.program.median_of())
            return np.array(np.median(source.astype("float64")) if n else 0.0)
        lead = {"nav": (n,), "sig": self.case.sig, "single": ()}[b.kind]
        if not n:
            return np.broadcast_to(neutral(b), (*lead, *b.extra)).copy()
        pixels = self._pixels(b)  # (n, pixels, entries of extra)
        if b.op in ("last", "hash"):
            pixels = pixels if b.kind == "sig" else _add(pixels, 1)[:, None]
            value = pixels[-1] if b.op == "last" else _hash(pixels[..., 0])
        else:
            value = pixels
            for axis in {"nav": (1,), "sig": (0,), "single": (1, 0)}[b.kind]:
                value = _reduce(b.op, value, axis)
        if self.program.postprocess and b.op in POSTPROCESSED:
            cap = np.array(CAP, b.dtype)
            if b.op == "min":
                value = np.where(value < cap, value, cap)
            elif b.op == "max":
                value = np.where(value > cap, value, cap)
            else:
                value = value * np.array(2, b.dtype)
        if b.op == "scan":
            value = np.cumsum(value, axis=0)
        return value.reshape((*lead, *b.extra)).astype(b.dtype)

    def _pixels(self, b):
        values = cast(self.frames.reshape((len(self.frames), -1, 1)), b.dtype)
        if b.of == "one":
            values = np.ones_like(values)
        if b.of == "square":
            values = values**2 if values.dtype != bool else values
        times = np.full(values.shape, self.program.factor)
        if b.of == "where":
            times = times * (self.positions + 1)[:, None, None]
        if b.of == "place":
            times = times * (np.arange(values.shape[1]) + 1)[None, :, None]
        if b.op != "hash":
            times = times * WEIGHTS[: int(np.prod(b.extra))]
        return values * cast(times, b.dtype)

    def _output(self, output, merged):
        form = output.form
        if form in ("full", "here"):
            return self._expected(self.positions.astype("int64"), "nav", (), None)
        b, value = self.program.buffer(output.source), merged[output.source]
        wide = "complex128" if value.dtype.kind == "c" else "float64"
        if form == "total":
            total = np.asarray(sum(value.astype(wide), np.zeros(b.extra)), dtype=wide)
            return self._expected(total, "single", b.extra, None)
        if form == "mean":
            value = value.astype(wide) / max(1, len(self.frames))
            return self._expected(value, b.kind, b.extra, None)
        if form == "double":
            value = value + value
        done = self._expected(value, b.kind, b.extra, b.fill)
        if form == "masked":
            done.mask = self._expected(value != 0, b.kind, b.extra, False).value
        if form == "invalid":
            done.mask = np.zeros_like(done.mask)
        return done

    def _expected(self, value, kind, extra, fill):
        value = np.asarray(value)
        if kind != "nav":
            raw = value.reshape((1,)) if kind == "single" and not extra else value
            return Expected(value, raw, np.ones(value.shape, bool))
        if fill is None:
            fill = {"f": np.nan, "c": complex(np.nan, np.nan)}.get(value.dtype.kind, 0)
        full = np.full((self.n_frames, *extra), fill, value.dtype)
        full[self.positions] = value
        mask = np.zeros(full.shape, bool)
        mask[self.positions] = True
        shape = (*self.case.nav, *extra)
        return Expected(full.reshape(shape), value, mask.reshape(shape))


def _add(values, axis):
    return values.any(axis) if values.dtype == bool else values.sum(axis, dtype=values.dtype)


def _reduce(op, values, axis):
    if op in ("sum", "scan"):
        return _add(values, axis)
    if op == "xor":
        return np.bitwise_xor.reduce(values, axis=axis)
    return values.min(axis) if op == "min" else values.max(axis)


def _hash(values):
    """Return hash and power over the frames, in Python's integers: shape (pixels, 2)."""
    n = len(values)
    rows = [31 ** (n - 1 - k) * row.astype(object) for k, row in enumerate(values)]
    pairs = [[int(h) % 2**64, 31**n % 2**64] for h in sum(rows)]
    return np.array(pairs, dtype="uint64").astype(values.dtype)
