"""Input and output, from the records of a file up to finished runs; docs/architecture.md shows the order."""
