"""The laws that a UDF must keep, one function each: its name, its docstring, its check.

A law takes a `Subject` and raises `UDFCheckError` where the UDF breaks it.
"""
