"""Questions beside a run: forecasts, audits, neighbours, containment, comparisons and explanations."""
