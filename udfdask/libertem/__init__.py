"""Run UDFs that were written for LiberTEM, unchanged."""

from udfdask.libertem.adapt import adapt

__all__ = ["adapt"]
