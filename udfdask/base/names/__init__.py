"""Make names from code and content: equal input gives equal names, other input other names.

dask's token of a class is its import path, which does not change when the module is edited and
reloaded; that of an array is equal for a square array and its transpose. The names here depend on
everything that decides what code does: its bytecode, its bound values, and all objects that it
refers to, also through the user's own modules. Libraries count by name only.
"""
