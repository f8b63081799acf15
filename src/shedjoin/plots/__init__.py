"""Plots of rows: described as plain data, drawn with matplotlib (the extra `plot`)."""
