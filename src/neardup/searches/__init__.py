"""Exact searches by posting lists."""
