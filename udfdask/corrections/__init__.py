"""Correct detector artifacts (`CorrectionSet`) and rotated or flipped coordinates."""

from udfdask.corrections import coordinates
from udfdask.corrections.correction_set import CorrectionSet
from udfdask.corrections.descan import Descan

__all__ = ["CorrectionSet", "Descan", "coordinates"]
