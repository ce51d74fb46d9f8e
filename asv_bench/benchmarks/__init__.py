"""Benchmarks of asv: `asv run --python=same --quick` in the folder above."""
