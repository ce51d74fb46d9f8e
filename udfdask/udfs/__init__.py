"""Built-in UDFs."""

from udfdask.udfs.apply_masks import ApplyMasksUDF
from udfdask.udfs.auto import AutoUDF
from udfdask.udfs.com import CoMUDF
from udfdask.udfs.correlation import CorrelationUDF
from udfdask.udfs.crystallinity import CrystallinityUDF
from udfdask.udfs.fem import FEMUDF
from udfdask.udfs.logsum import LogsumUDF
from udfdask.udfs.neighbor_average import NeighborAverageUDF
from udfdask.udfs.neighbor_similarity import NeighborSimilarityUDF
from udfdask.udfs.pick import NoOpUDF, PickUDF
from udfdask.udfs.radial_fourier import RadialFourierUDF
from udfdask.udfs.radial_profile import RadialProfileUDF
from udfdask.udfs.record import RecordUDF
from udfdask.udfs.scan_drift import ScanDriftUDF
from udfdask.udfs.shared.com_corrections import (
    GuessResult,
    apply_correction,
    guess_corrections,
    to_beam_shift,
)
from udfdask.udfs.shared.find_center import find_center
from udfdask.udfs.shared.integrate_drift import integrate_drift
from udfdask.udfs.stddev import StdDevUDF
from udfdask.udfs.sum import SumSigUDF, SumUDF
from udfdask.udfs.virtual_detector import VirtualDetectorUDF

__all__ = [
    "FEMUDF",
    "ApplyMasksUDF",
    "AutoUDF",
    "CoMUDF",
    "CorrelationUDF",
    "CrystallinityUDF",
    "GuessResult",
    "LogsumUDF",
    "NeighborAverageUDF",
    "NeighborSimilarityUDF",
    "NoOpUDF",
    "PickUDF",
    "RadialFourierUDF",
    "RadialProfileUDF",
    "RecordUDF",
    "ScanDriftUDF",
    "StdDevUDF",
    "SumSigUDF",
    "SumUDF",
    "VirtualDetectorUDF",
    "apply_correction",
    "find_center",
    "guess_corrections",
    "integrate_drift",
    "to_beam_shift",
]
