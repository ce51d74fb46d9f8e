"""Compute dot products of frames with many masks: store masks, choose a format, multiply."""
