"""Corrections of what a microscope did to the data: coordinates that are turned or flipped."""

from udfdask.corrections import coordinates

__all__ = ["coordinates"]
