"""End computations after a time, and say which tasks were running."""
