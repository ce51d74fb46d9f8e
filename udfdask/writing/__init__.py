"""Write files and stores completely or not at all, and never over a user's data."""

from udfdask.writing.replacing import part_path, put_in_place, replacing
from udfdask.writing.targets import Target, check_apart, check_target

__all__ = ["Target", "check_apart", "check_target", "part_path", "put_in_place", "replacing"]
