"""Run graphs on a scheduler: choose workers, count progress, report losses."""
