"""Decide everything about a run before a graph exists; the result is one frozen value."""
