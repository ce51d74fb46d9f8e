"""Turn one chunk of data into one partial result per UDF: the work of one task."""
