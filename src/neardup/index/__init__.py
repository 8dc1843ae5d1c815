"""What stays: an index of documents on disk that answers which of them are similar to a new one."""
