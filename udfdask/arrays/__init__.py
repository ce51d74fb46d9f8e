"""The geometry of chunks, and the array types of blocks."""
