"""Correct detector artifacts (`CorrectionSet`) and rotated or flipped coordinates."""

from udfdask.corrections import coordinates
from udfdask.corrections.correction_set import CorrectionSet

__all__ = ["CorrectionSet", "coordinates"]
