"""Array backends: the array types of blocks, their choice for each UDF, and conversions."""
