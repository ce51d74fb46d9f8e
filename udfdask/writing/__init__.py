"""Write files and stores completely or not at all, and never over a user's data."""

from udfdask.writing.replacing import replacing
from udfdask.writing.targets import Target, check_apart, check_target

__all__ = ["Target", "check_apart", "check_target", "replacing"]
