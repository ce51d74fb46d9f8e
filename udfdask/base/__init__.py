"""What every room uses: settings, types, advice, names, tracebacks, files that are replaced."""
