"""Shapes, slices, chunk grids, regions of interest and tilings: plain numbers, no data."""
