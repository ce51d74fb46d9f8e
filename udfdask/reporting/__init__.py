"""How far a run has come, told to a progress bar or to anybody else."""

from udfdask.reporting.state import ProgressReporter, ProgressState

__all__ = ["ProgressReporter", "ProgressState"]
