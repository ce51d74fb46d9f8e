"""Keep partial results on disk: one record per UDF and chunk, or per merge."""
