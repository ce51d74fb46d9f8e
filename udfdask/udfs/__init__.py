"""Built-in UDFs."""

from typing import TYPE_CHECKING

from udfdask.base.lazy_names import lazy_names

if TYPE_CHECKING:
    from udfdask.udfs.apply_masks import ApplyMasksUDF as ApplyMasksUDF
    from udfdask.udfs.auto import AutoUDF as AutoUDF
    from udfdask.udfs.com import CoMUDF as CoMUDF
    from udfdask.udfs.correlation import CorrelationUDF as CorrelationUDF
    from udfdask.udfs.crystallinity import CrystallinityUDF as CrystallinityUDF
    from udfdask.udfs.fem import FEMUDF as FEMUDF
    from udfdask.udfs.neighbor_average import NeighborAverageUDF as NeighborAverageUDF
    from udfdask.udfs.neighbor_similarity import NeighborSimilarityUDF as NeighborSimilarityUDF
    from udfdask.udfs.pick import NoOpUDF as NoOpUDF
    from udfdask.udfs.pick import PickUDF as PickUDF
    from udfdask.udfs.radial_fourier import RadialFourierUDF as RadialFourierUDF
    from udfdask.udfs.radial_profile import RadialProfileUDF as RadialProfileUDF
    from udfdask.udfs.record import RecordUDF as RecordUDF
    from udfdask.udfs.scan_drift import ScanDriftUDF as ScanDriftUDF
    from udfdask.udfs.scan_drift import integrate_drift as integrate_drift
    from udfdask.udfs.shared.com_corrections import GuessResult as GuessResult
    from udfdask.udfs.shared.com_corrections import apply_correction as apply_correction
    from udfdask.udfs.shared.com_corrections import guess_corrections as guess_corrections
    from udfdask.udfs.shared.com_corrections import to_beam_shift as to_beam_shift
    from udfdask.udfs.shared.find_center import find_center as find_center
    from udfdask.udfs.stddev import StdDevUDF as StdDevUDF
    from udfdask.udfs.sum import LogsumUDF as LogsumUDF
    from udfdask.udfs.sum import SumSigUDF as SumSigUDF
    from udfdask.udfs.sum import SumUDF as SumUDF
    from udfdask.udfs.virtual_detector import VirtualDetectorUDF as VirtualDetectorUDF

    __all__: list[str]

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
            "neighbor_average": "NeighborAverageUDF",
            "neighbor_similarity": "NeighborSimilarityUDF",
            "pick": "NoOpUDF PickUDF",
            "radial_fourier": "RadialFourierUDF",
            "radial_profile": "RadialProfileUDF",
            "record": "RecordUDF",
            "scan_drift": "ScanDriftUDF integrate_drift",
            "shared.com_corrections": (
                "GuessResult apply_correction guess_corrections to_beam_shift"
            ),
            "shared.find_center": "find_center",
            "stddev": "StdDevUDF",
            "sum": "LogsumUDF SumSigUDF SumUDF",
            "virtual_detector": "VirtualDetectorUDF",
        },
    )
    __all__ = list(__dir__())
