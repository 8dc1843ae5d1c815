"""The command line: one file per command; only render.py prints."""
