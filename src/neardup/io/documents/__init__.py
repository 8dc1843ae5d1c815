"""The sources of documents: files, standard input and data in memory."""
