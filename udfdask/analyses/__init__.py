"""Analyses from frames to physics: phases, strain, and what they are made of."""

from typing import TYPE_CHECKING

from udfdask.base.lazy_names import lazy_names

if TYPE_CHECKING:
    from udfdask.analyses.disks import FindDisksUDF as FindDisksUDF
    from udfdask.analyses.disks import find_disks as find_disks
    from udfdask.analyses.dpc import IntegratedDPCUDF as IntegratedDPCUDF
    from udfdask.analyses.dpc import IntegratedFieldUDF as IntegratedFieldUDF
    from udfdask.analyses.dpc import integrated_dpc as integrated_dpc
    from udfdask.analyses.ellipse import Ellipse as Ellipse
    from udfdask.analyses.ellipse import fit_ellipse as fit_ellipse
    from udfdask.analyses.integration import integrate_gradient as integrate_gradient
    from udfdask.analyses.lattice import guess_lattice as guess_lattice
    from udfdask.analyses.lattice_fits import FitLatticeUDF as FitLatticeUDF
    from udfdask.analyses.lattice_fits import fit_lattice as fit_lattice
    from udfdask.analyses.registered import ParallaxUDF as ParallaxUDF
    from udfdask.analyses.registered import parallax as parallax
    from udfdask.analyses.scan_rotation import ScanRotationUDF as ScanRotationUDF
    from udfdask.analyses.side_band import SideBandUDF as SideBandUDF
    from udfdask.analyses.side_band import single_side_band as single_side_band
    from udfdask.analyses.strain import StrainUDF as StrainUDF
    from udfdask.analyses.strain import strain_map as strain_map
    from udfdask.analyses.tilt_corrected import TiltCorrectedUDF as TiltCorrectedUDF
    from udfdask.udfs.polar import PolarMeanUDF as PolarMeanUDF
    from udfdask.udfs.polar import PolarUDF as PolarUDF
    from udfdask.udfs.radial_variance import RadialVarianceUDF as RadialVarianceUDF

    __all__: list[str]

if not TYPE_CHECKING:  # a type checker would accept any name
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "disks": "FindDisksUDF find_disks",
            "integration": "integrate_gradient",
            "lattice": "guess_lattice",
            "lattice_fits": "FitLatticeUDF fit_lattice",
            "strain": "StrainUDF strain_map",
            "dpc": "IntegratedDPCUDF IntegratedFieldUDF integrated_dpc",
            "scan_rotation": "ScanRotationUDF",
            "side_band": "SideBandUDF single_side_band",
            "ellipse": "Ellipse fit_ellipse",
            "registered": "ParallaxUDF parallax",
            "tilt_corrected": "TiltCorrectedUDF",
            ".udfs.polar": "PolarMeanUDF PolarUDF",
            ".udfs.radial_variance": "RadialVarianceUDF",
        },
    )
    __all__ = list(__dir__())
