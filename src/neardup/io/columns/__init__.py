"""Conversion of rows of any source to columns, with a reason for every row that is rejected."""
