"""The functions that start a run."""
