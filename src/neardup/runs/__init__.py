"""A run, once: source, pipeline, results, report; and what differs between memory, files and Spark."""
