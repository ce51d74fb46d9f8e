"""Cuts tiles and frames out of the blocks of a chunk, whatever these are made of."""
