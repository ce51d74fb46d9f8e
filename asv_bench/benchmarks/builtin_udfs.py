"""Time and peak memory of the ready-made UDFs on the named layouts."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import numpy as np

import udfdask as ud
from benchmarks.layouts import LAYOUTS, dataset
from udfdask import udfs

OWN_CENTERS: dict[str, Callable[..., ud.UDF]] = {
    "ring": partial(udfs.VirtualDetectorUDF, "ring", ri=20, ro=50),
    "com": partial(udfs.CoMUDF, r=50),
    "fem": partial(udfs.FEMUDF, rad_in=20, rad_out=50),
    "profile": partial(udfs.RadialProfileUDF, r=50),
    "fourier": partial(udfs.RadialFourierUDF, r=50, n_bins=5),
}


def sixteen_masks(sig: tuple[int, ...]) -> np.ndarray:
    """Return dense masks, shape (16, *sig), float32."""
    return np.random.default_rng(1).random((16, *sig), dtype="float32")


def make_udf(name: str, sig: tuple[int, ...]) -> ud.UDF:
    """Return a ready-made UDF; in `setup`, NotImplementedError has asv skip what it cannot do."""
    cls = getattr(udfs, name)
    if name == "CoMUDF" and len(sig) != 2:
        raise NotImplementedError("a center of mass needs two signal axes")
    return cls(mask_factories=partial(sixteen_masks, sig)) if name == "ApplyMasksUDF" else cls()


class EachUDF:
    """One UDF over one data set, built and computed."""

    timeout = 600
    param_names: ClassVar = ["layout", "udf"]
    params: ClassVar[Any] = (
        ["scan", "float32", "eds", "large", "events"],
        ["SumUDF", "SumSigUDF", "StdDevUDF", "CoMUDF", "ApplyMasksUDF", "NeighborSimilarityUDF"],
    )

    def setup(self, layout: str, udf: str) -> None:
        self.sig_dims = LAYOUTS[layout].sig_dims
        self.udf = make_udf(udf, LAYOUTS[layout].sig)
        self.array = dataset(layout)

    def run(self) -> None:
        ud.run_udf(self.array, self.udf, sig_dims=self.sig_dims).compute(scheduler="threads")

    def time_run(self, layout: str, udf: str) -> None:
        self.run()

    def peakmem_run(self, layout: str, udf: str) -> None:
        self.run()


class OwnCenters:
    """UDFs with a center of its own for each frame."""

    timeout = 600
    param_names: ClassVar = ["udf"]
    params: ClassVar[Any] = list(OWN_CENTERS)

    def setup(self, udf: str) -> None:
        self.array = dataset("scan")
        (*nav, ny, nx) = self.array.shape
        middle = np.array([ny // 2, nx // 2])
        centers = middle + np.random.default_rng(1).normal(0, 2, (*nav, 2))
        self.udf = OWN_CENTERS[udf](centers=centers)

    def time_run(self, udf: str) -> None:
        ud.run_udf(self.array, self.udf).compute(scheduler="threads")


class SumsInOnePass:
    """Both sums in one pass, which should cost little more than one of them."""

    timeout = 600
    param_names: ClassVar = ["layout"]
    params: ClassVar[Any] = ["scan", "eds", "large"]

    def setup(self, layout: str) -> None:
        self.sig_dims = LAYOUTS[layout].sig_dims
        self.array = dataset(layout)

    def time_both(self, layout: str) -> None:
        both = [udfs.SumUDF(), udfs.SumSigUDF()]
        results = ud.run_udf(self.array, both, sig_dims=self.sig_dims)
        ud.compute(*results, scheduler="threads")
