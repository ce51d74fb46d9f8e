"""Run graphs on a scheduler: choose workers, count progress, keep partial results."""
