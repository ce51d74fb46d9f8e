"""The objects that a run returns."""
