"""Figures, one file each: which cells they need, and the picture made from their rows."""
