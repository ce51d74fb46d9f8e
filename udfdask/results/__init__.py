"""The objects that a run hands back."""
