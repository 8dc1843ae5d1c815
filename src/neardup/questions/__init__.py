"""Queries other than a run: forecasts, audits, neighbours, containment, comparisons and explanations."""
