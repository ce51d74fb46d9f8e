"""Restrict tasks to suitable workers, wait for workers, explain lost ones."""
