"""Corrections of what a microscope did to the data: detector frames, and turned coordinates."""

from udfdask.corrections import coordinates
from udfdask.corrections.correction_set import CorrectionSet

__all__ = ["CorrectionSet", "coordinates"]
