"""Something to look at: the report as one HTML file, and the same page from a local server."""
