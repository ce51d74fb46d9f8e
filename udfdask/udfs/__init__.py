"""Built-in UDFs."""

from typing import TYPE_CHECKING

from udfdask.lazy_names import lazy_names

if TYPE_CHECKING:
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

if not TYPE_CHECKING:  # a type checker would accept any name
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "apply_masks": "ApplyMasksUDF",
            "auto": "AutoUDF",
            "com": "CoMUDF",
            "correlation": "CorrelationUDF",
            "crystallinity": "CrystallinityUDF",
            "fem": "FEMUDF",
            "logsum": "LogsumUDF",
            "neighbor_average": "NeighborAverageUDF",
            "neighbor_similarity": "NeighborSimilarityUDF",
            "pick": "NoOpUDF PickUDF",
            "radial_fourier": "RadialFourierUDF",
            "radial_profile": "RadialProfileUDF",
            "record": "RecordUDF",
            "scan_drift": "ScanDriftUDF",
            "shared.com_corrections": (
                "GuessResult apply_correction guess_corrections to_beam_shift"
            ),
            "shared.find_center": "find_center",
            "shared.integrate_drift": "integrate_drift",
            "stddev": "StdDevUDF",
            "sum": "SumSigUDF SumUDF",
            "virtual_detector": "VirtualDetectorUDF",
        },
    )
