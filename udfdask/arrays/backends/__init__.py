"""Array backends: what blocks are made of, which of them a UDF is given, and how they convert."""
