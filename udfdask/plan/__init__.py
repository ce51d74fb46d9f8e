"""Every decision of a run, made before a graph exists, as one frozen value."""
