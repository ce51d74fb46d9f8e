"""Workers of a cluster: which may run a task, whether they are there, what was lost with them."""
