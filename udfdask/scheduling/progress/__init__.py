"""How far a run has come, told to a progress bar or to anybody else."""

from udfdask.scheduling.progress.state import ProgressReporter, ProgressState

__all__ = ["ProgressReporter", "ProgressState"]
