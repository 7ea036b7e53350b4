"""Tables in, blocks out."""
