"""What tasks do: turn a chunk of data into partial results, merge these, make the results."""
