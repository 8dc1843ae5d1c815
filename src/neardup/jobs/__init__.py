"""A run, written once: source, pipeline, results, report; and adapters for memory, files and Spark."""
