"""Geometry of chunks, and the types of arrays that blocks are made of."""
