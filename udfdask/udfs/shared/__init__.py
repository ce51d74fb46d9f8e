"""Parts that several built-in UDFs share; none of them is a UDF."""
