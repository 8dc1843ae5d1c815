"""Exact searches on an inverted index of sets."""
