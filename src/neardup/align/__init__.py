"""The passages that two texts share: runs of equal words, and stretches copied with edits."""
