"""Input and output: file formats, sources, the work folder and finished runs."""
