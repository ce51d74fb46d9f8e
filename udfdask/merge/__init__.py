"""Merge partial results into one, and make the results that users see."""
