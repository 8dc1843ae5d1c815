"""Rows of any source become columns."""
