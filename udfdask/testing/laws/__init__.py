"""Define the laws that each UDF must keep, one function for each law.

A law takes a `Subject` and raises `UDFCheckError` if the UDF breaks it. The first line of its
docstring states the law; the report of `check_udf` prints it.
"""
