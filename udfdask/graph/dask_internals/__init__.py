"""Import the parts of dask that are not documented and may change; no other module does.

All other modules of udfdask use the names in `tests/project/test_architecture.py` only.
`tests/graph/test_dask_internals.py` tests each point in seconds, without the rest of udfdask.
"""
