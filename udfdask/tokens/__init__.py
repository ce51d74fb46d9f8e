"""Names that follow code and content: equal for equal input, another for anything else.

dask's own token of a class is its import path, which stays the same when the module is edited and
reloaded, and of an array its bytes in memory order, which a transposed square has in common with
the original. Here all counts that decides what code does: its bytecode, what it carries, and
whatever it refers to, followed through the user's own modules. Libraries are known by name.
"""

from udfdask.tokens.naming import Identity, identity_of, tokenize_value

__all__ = ["Identity", "identity_of", "tokenize_value"]
