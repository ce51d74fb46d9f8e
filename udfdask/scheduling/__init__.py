"""Hands a graph to a scheduler: which workers, what they hold, how far they are."""
