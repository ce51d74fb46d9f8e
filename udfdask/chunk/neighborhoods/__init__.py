"""Process chunks with UDFs that have a halo: windows, margins and seams of chunks."""
