"""Run graphs on a scheduler: choose workers, count progress."""
