"""The papers: one package each, one file a figure, the claims beside."""
