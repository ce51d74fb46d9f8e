"""Partial results become one, and then the results that users see."""
