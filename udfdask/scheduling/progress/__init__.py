"""Report the progress of a run to a progress bar or to a user's object."""

from udfdask.scheduling.progress.state import ProgressReporter, ProgressState

__all__ = ["ProgressReporter", "ProgressState"]
