"""Tables, one file each: which cells they need, and the text made from their rows."""
