"""The work of one task: one chunk of data becomes one partial result."""
