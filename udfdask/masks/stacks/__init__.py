"""The dot products of many masks with frames: which masks, in which format, multiplied how."""
