"""UDFs of LiberTEM, of packages based on it, and of its users; the data and grids they run on."""

import numpy as np
import pytest
from libertem import masks
from libertem.common.container import MaskContainer
from libertem.udf import UDF
from libertem.udf.auto import AutoUDF
from libertem.udf.base import NoOpUDF
from libertem.udf.com import CoMUDF
from libertem.udf.crystallinity import CrystallinityUDF
from libertem.udf.FEM import FEMUDF
from libertem.udf.logsum import LogsumUDF
from libertem.udf.masks import ApplyMasksUDF
from libertem.udf.raw import PickUDF
from libertem.udf.stddev import StdDevUDF
from libertem.udf.sum import SumUDF
from libertem.udf.sumsigudf import SumSigUDF
from libertem_blobfinder.common.gridmatching import Matcher
from libertem_blobfinder.common.patterns import RadialGradient
from libertem_blobfinder.udf.correlation import (
    FastCorrelationUDF,
    FullFrameCorrelationUDF,
    SparseCorrelationUDF,
)
from libertem_blobfinder.udf.integration import IntegrationUDF
from libertem_blobfinder.udf.refinement import FastmatchMixin

NAV, SIG = (6, 8), (32, 32)
PEAKS = np.array([(8, 8), (8, 22), (20, 15)])
GRIDS = {
    "rows": (2, 8, 32, 32),
    "both scan axes": (2, 3, 32, 32),
    "signal axes": (2, 8, 16, 32),
    "all axes, ragged": ((1, 3, 2), (5, 3), (20, 12), (7, 25)),
    "one frame a chunk": (1, 1, 32, 32),
    "one chunk": (6, 8, 32, 32),
}
ROI = np.random.default_rng(3).random(NAV) > 0.4
ONE_FRAME = np.zeros(NAV, bool)
ONE_FRAME[2, 3] = True


def make_data():
    """Frames with three disks that move over a background that grows, uint16."""
    data = np.random.default_rng(0).integers(0, 20, (*NAV, *SIG)).astype(np.uint16)
    data += np.arange(48, dtype=np.uint16).reshape((*NAV, 1, 1))
    y, x = np.mgrid[: SIG[0], : SIG[1]]
    for i, j in np.ndindex(NAV):
        for cy, cx in PEAKS:
            data[i, j][(y - cy - i % 2) ** 2 + (x - cx - j % 2) ** 2 < 9] += 150
    return data


class PartitionsUDF(UDF):
    """A partition method, and task data that know the chunk; in LiberTEM's words."""

    def get_task_data(self):
        return {"frames": self.meta.partition_shape.nav.size}

    def get_result_buffers(self):
        return {
            "first": self.buffer(kind="nav", dtype="int64"),
            "total": self.buffer(kind="sig", dtype="float64", use="private"),
            "mean": self.buffer(kind="sig", dtype="float64", use="result_only"),
        }

    def process_partition(self, partition):
        origin = self.meta.slice.origin
        n = partition.shape[0]
        assert tuple(self.meta.slice.shape) == partition.shape == tuple(self.meta.partition_shape)
        self.results.first[:] = np.arange(origin[0], origin[0] + n)
        self.results.total[:] += partition.sum(axis=0)

    def merge(self, dest, src):
        dest.first[:] = src.first
        dest.total[:] += src.total

    def get_results(self):
        return {"mean": self.results.total / 48}


class SubtractUDF(UDF):
    """Aux data, an own dtype, `preprocess`, `postprocess` and `merge_all`, in LiberTEM's words."""

    def __init__(self, dark):
        super().__init__(dark=dark)

    def get_preferred_input_dtype(self):
        return np.float64

    def get_result_buffers(self):
        return {
            "sums": self.buffer(kind="nav", extra_shape=(2,), dtype=self.meta.input_dtype),
            "least": self.buffer(kind="sig", dtype=self.meta.input_dtype),
        }

    def preprocess(self):
        self.results.least[:] = np.inf

    def process_tile(self, tile):
        dark = np.reshape(self.params.dark, (-1, 1, 1))
        self.results.sums[:, 0] += (tile - dark).sum(axis=(1, 2))
        self.results.least[:] = np.minimum(self.results.least, (tile - dark).min(axis=0))

    def postprocess(self):
        self.results.sums[:, 1] = 2 * self.results.sums[:, 0]

    def merge_all(self, ordered_results):
        parts = ordered_results.values()
        return {
            "sums": np.concatenate([b.sums for b in parts]),
            "least": np.minimum.reduce([b.least for b in parts]),
        }

    def merge(self, dest, src):
        dest.sums[:] = src.sums
        dest.least[:] = np.minimum(dest.least, src.least)


def _masks():
    return np.random.default_rng(1).random((3, *SIG)).astype(np.float32)


def _dark():
    dark = np.random.default_rng(2).integers(0, 9, NAV).astype(np.float32)
    return SubtractUDF(dark=SubtractUDF.aux_data(dark, kind="nav", dtype="float32"))


def _integration():
    centers = np.tile(PEAKS.astype(np.int64), (NAV[0] * NAV[1], 1, 1))
    aux = UDF.aux_data(centers, kind="nav", extra_shape=(3, 2), dtype=np.int64)
    return IntegrationUDF(centers=aux, pattern=RadialGradient(radius=3, search=6))


def _correlation(cls, **options):
    return lambda: cls(peaks=PEAKS, match_pattern=RadialGradient(radius=3, search=6), **options)


def _shifted_masks():
    shifts = np.random.default_rng(4).integers(-3, 4, (*NAV, 2))
    aux = UDF.aux_data(shifts, kind="nav", extra_shape=(2,), dtype=shifts.dtype)
    return ApplyMasksUDF(mask_factories=_masks, shifts=aux)


def _bins():
    return masks.radial_bins(centerX=15, centerY=16, imageSizeX=32, imageSizeY=32, n_bins=5)


class RefinedUDF(FastmatchMixin, FastCorrelationUDF):
    """What `run_refine` of LiberTEM-blobfinder makes."""


def _refinement():
    zero, a, b = (np.array(v, dtype=float) for v in [(8, 8), (0, 14), (12, 7)])
    lattice = {"start_zero": zero, "start_a": a, "start_b": b, "matcher": Matcher()}
    return _correlation(RefinedUDF, **lattice)()


def _parallax(name, **options):
    def make():
        parallax = _installed("libertem_parallax")
        microscope = {"scan_sampling": (1, 1.5), "energy": 80e3, "semiangle_cutoff": 9}
        defocus = {"angular_sampling": (1, 1), "aberration_coefs": {"C10": 400, "C12": 90}}
        cls = getattr(parallax, name)
        return cls.from_parameters((*NAV, *SIG), **microscope, **defocus, **options)

    return make


SIDE_BANDS = {"lamb": 4.2e-12, "dpix": (6e-11, 5e-11), "semiconv": 25e-3, "semiconv_pix": 9}


def _side_bands(**options):
    return lambda: _installed("ptychography40.reconstruction.ssb").SSB_UDF(**SIDE_BANDS, **options)


def _own_trotters():
    generate_masks = _installed("ptychography40.reconstruction.ssb").generate_masks
    stack = generate_masks(NAV, SIG, np.float32, **SIDE_BANDS)
    container = MaskContainer(
        lambda: stack, dtype=stack.dtype, use_sparse="scipy.sparse.csr", count=len(stack)
    )
    return _side_bands(mask_container=container)()


def _hologram(**options):
    def make():
        holo = _installed("libertem_holo.udf")
        y, x = np.indices((16, 16)) - 8
        aperture = np.fft.fftshift(np.hypot(y, x) < 5)
        return holo.HoloReconstructUDF(
            out_shape=(16, 16), sb_position=(4, 7), aperture=aperture, **options
        )

    return make


def _installed(package):
    return pytest.importorskip(package, reason=f"{package} is in the extra test")


OBJECTS = {
    "SumUDF": SumUDF,
    "SumSigUDF": SumSigUDF,
    "StdDevUDF": StdDevUDF,
    "LogsumUDF": LogsumUDF,
    "ApplyMasksUDF": lambda: ApplyMasksUDF(mask_factories=_masks),
    "ApplyMasksUDF with shifts": _shifted_masks,
    "ApplyMasksUDF with sparse masks": lambda: ApplyMasksUDF(mask_factories=_bins),
    "CoMUDF": lambda: CoMUDF.with_params(cy=16, cx=15, r=12),
    "CoMUDF with regression": lambda: CoMUDF.with_params(
        cy=16, cx=15, r=12, ri=3, scan_rotation=20, flip_y=True, regression=1
    ),
    "FEMUDF": lambda: FEMUDF(center=(16, 16), rad_in=2, rad_out=9),
    "CrystallinityUDF": lambda: CrystallinityUDF(
        rad_in=2, rad_out=9, real_center=(16, 16), real_rad=2
    ),
    "PickUDF": PickUDF,
    "AutoUDF": lambda: AutoUDF(f=lambda frame: frame.sum(axis=0)),
    "NoOpUDF": NoOpUDF,
    "FastCorrelationUDF": _correlation(FastCorrelationUDF),
    "FullFrameCorrelationUDF": _correlation(FullFrameCorrelationUDF),
    "SparseCorrelationUDF": _correlation(SparseCorrelationUDF, steps=3),
    "FastCorrelationUDF with refinement": _refinement,
    "IntegrationUDF": _integration,
    "ParallaxUDF": _parallax("ParallaxUDF", rotation_angle=0.3),
    "ParallaxUDF with upsampling": _parallax("ParallaxUDF", upsampling_factor=2),
    "ParallaxPhaseFlipUDF": _parallax("ParallaxPhaseFlipUDF", detector_flip_cols=True),
    "ParallaxPhaseFlipUDF with upsampling": _parallax("ParallaxPhaseFlipUDF", upsampling_factor=2),
    "SSB_UDF": _side_bands(),
    "SSB_UDF with float64": _side_bands(dtype=np.float64, cutoff=3),
    "SSB_UDF with masks made before": _own_trotters,
    "HoloReconstructUDF": _hologram(),
    "HoloReconstructUDF in single precision": _hologram(precision=False),
    "a UDF with `process_partition`": PartitionsUDF,
    "a UDF with aux data and `merge_all`": _dark,
}
"""Makers of LiberTEM's objects by the names that the table in the documentation has."""

EXACT = {
    "SumUDF",
    "SumSigUDF",
    "PickUDF",
    "AutoUDF",
    "NoOpUDF",
    "HoloReconstructUDF",
    "HoloReconstructUDF in single precision",
    "a UDF with `process_partition`",
    "a UDF with aux data and `merge_all`",
}
"""Those whose numbers are equal to the last bit; the others add floats up in another order."""

OF_TILES = {"SparseCorrelationUDF"}
"""Those whose numbers depend on tiles, in LiberTEM too."""

PARTITIONS = {"rows": 3, "one frame a chunk": 48, "one chunk": 1}
"""How many partitions LiberTEM makes of the data to have the chunks of a grid."""

NO_THIN_SCANS = {
    "CoMUDF",
    "CoMUDF with regression",
    "ApplyMasksUDF with shifts",
    "IntegrationUDF",
    "SSB_UDF with masks made before",
    "a UDF with aux data and `merge_all`",
}
"""LiberTEM's CoMUDF takes no scan of one row; aux data and masks of the others fit one scan."""

THIN = {
    "one row of the scan": ((1, 8, 32, 32), (1, 3, 32, 32)),
    "one column of the scan": ((6, 1, 32, 32), (4, 1, 16, 32)),
}
"""Shapes with an axis of size one, and chunks of them."""
