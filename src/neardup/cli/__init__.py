"""The command line: one file a command; render.py is the only file that prints."""
