"""The report as one HTML file, and the same page from a local server."""
