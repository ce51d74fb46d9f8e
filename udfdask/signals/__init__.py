"""HyperSpy's signals: what a run takes of them, and signals made of its results."""

from udfdask.signals.results import SignalResult
from udfdask.signals.snapshots import SignalIterator, SignalSnapshot

__all__ = ["SignalIterator", "SignalResult", "SignalSnapshot"]
