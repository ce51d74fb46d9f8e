"""Share code between the built-in UDFs; nothing here is a UDF."""
