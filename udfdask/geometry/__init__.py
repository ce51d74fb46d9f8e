"""Compute shapes, slices, chunk grids, regions of interest and tilings, without any data."""
