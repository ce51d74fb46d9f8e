"""Cut tiles and frames from the blocks of a chunk, for any type of array."""
