"""What the tables of the ready-made UDFs say: each statement comes from a plan or a run."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np

import udfdask as ud
from udfdask import udfs
from udfdask.masks import DiskTemplate
from udfdask.plotting.choose import choose

UNIT = "counts"
AXES = (
    ud.Axis(name="y", unit="nm", scale=2.0),
    ud.Axis(name="x", unit="nm", scale=2.0),
    ud.Axis(name="ky", unit="mrad", scale=0.5),
    ud.Axis(name="kx", unit="mrad", scale=0.5),
)
"""Axes of the recording."""

SPARSE = {
    "sparse.COO": "COO",
    "sparse.GCXS": "GCXS",
    "scipy.sparse.csr_matrix": "CSR",
    "scipy.sparse.csr_array": "CSR",
}
"""Sparse backends, as the table names them."""


def recording() -> da.Array:
    """Return 8 x 8 frames of 16 x 16 pixels in four chunks."""
    frames = np.random.default_rng(0).poisson(3, (8, 8, 16, 16)).astype("uint16")
    return da.from_array(frames, chunks=(4, 4, 16, 16))


def make_udfs(folder: Path) -> dict[str, ud.UDF]:
    """Return an instance of each ready-made UDF by the name of its class."""
    return {
        "SumUDF": udfs.SumUDF(),
        "SumSigUDF": udfs.SumSigUDF(),
        "StdDevUDF": udfs.StdDevUDF(),
        "LogsumUDF": udfs.LogsumUDF(),
        "VirtualDetectorUDF": udfs.VirtualDetectorUDF("ring", ri=3, ro=6),
        "ApplyMasksUDF": udfs.ApplyMasksUDF(np.ones((2, 16, 16), bool)),
        "CoMUDF": udfs.CoMUDF(),
        "RadialProfileUDF": udfs.RadialProfileUDF(),
        "RadialFourierUDF": udfs.RadialFourierUDF(),
        "FEMUDF": udfs.FEMUDF(rad_in=2, rad_out=6),
        "CrystallinityUDF": udfs.CrystallinityUDF(rad_in=2, rad_out=6),
        "CorrelationUDF": udfs.CorrelationUDF([(8, 8)], DiskTemplate(radius=2), steps=2),
        "NeighborAverageUDF": udfs.NeighborAverageUDF(),
        "NeighborSimilarityUDF": udfs.NeighborSimilarityUDF(),
        "ScanDriftUDF": udfs.ScanDriftUDF(),
        "AutoUDF": udfs.AutoUDF(np.max),
        "PickUDF": udfs.PickUDF(),
        "RecordUDF": udfs.RecordUDF(folder / "frames.npy"),
        "NoOpUDF": udfs.NoOpUDF(),
    }


@dataclass(frozen=True, kw_only=True)
class ResultRow:
    """What the table says about a result."""

    name: str
    kind: str
    shape: tuple[str, ...]
    """``*nav`` and ``*sig`` for the axes of the scan and of a frame, names of all others."""
    dtype: str
    unit: str | None
    """None if it is not known, empty for a number without a unit."""
    plotted: bool
    """Whether pictures show it if no result is named."""


@dataclass(frozen=True, kw_only=True)
class UDFRow:
    """What the tables say about a UDF."""

    name: str
    results: tuple[ResultRow, ...]
    sparse: tuple[str, ...]
    """Names of sparse backends that it processes as they are."""
    cupy: bool
    """Whether it processes CuPy arrays as they are."""
    window: str
    """Number of frames along each axis that it sees around a position; empty for one frame."""
    merges: bool
    """Whether results of chunks are merged; otherwise each chunk has its rows of the result."""
    calibrated: tuple[str, ...]
    """Parameters that may be given with a unit."""


def describe(udf: ud.UDF) -> UDFRow:
    """Describe a UDF by the plan of a run over the recording."""
    result = ud.run_udf(recording(), udf, axes=AXES, unit=UNIT)
    offered = udf.get_backends()
    backends = (offered,) if isinstance(offered, str) else tuple(offered)
    plotted, plan = _plotted(result), result.explain().text
    window = re.search(r"windows of (.+?) frames", plan)
    return UDFRow(
        name=type(udf).__name__,
        results=tuple(
            ResultRow(
                name=name,
                kind=spec.kind,
                shape=_shape(spec, result.extra_axes.get(name, ())),
                dtype=str(spec.dtype),
                unit=result.units.get(name),
                plotted=name in plotted,
            )
            for name, spec in result.buffers.items()
        ),
        sparse=tuple(name for name in SPARSE if name in backends),
        cupy="cupy" in backends,
        window=window[1] if window else "",
        merges="nothing is merged" not in plan,
        calibrated=tuple(type(udf).calibrated),
    )


def _plotted(result: ud.Result) -> frozenset[str]:
    """Return the names of the results that pictures show by default."""
    try:
        return frozenset(choice.name for choice in choose(True, [result._info]))
    except ValueError:  # nothing that can be drawn
        return frozenset()


def _shape(spec: Any, extra: Sequence[ud.Axis]) -> tuple[str, ...]:
    """Return the shape of a result with names in place of numbers."""
    leading = {"nav": ("*nav",), "sig": ("*sig",), "single": ()}[spec.kind]
    names = [axis.name for axis in extra]
    if names[-2:] == [axis.name for axis in AXES[2:]]:
        names[-2:] = ["*sig"]
    return (*leading, *names)


@cache
def rows() -> tuple[UDFRow, ...]:
    """Return the description of each ready-made UDF."""
    with tempfile.TemporaryDirectory() as folder:
        return tuple(describe(udf) for udf in make_udfs(Path(folder)).values())
