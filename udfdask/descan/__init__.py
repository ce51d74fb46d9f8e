"""Shift frames so that the beam stays at one place of the detector (`Descan`)."""

from udfdask.descan.option import Descan

__all__ = ["Descan"]
