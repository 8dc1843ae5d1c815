"""The index: documents stored on disk, and looked up by similarity."""
