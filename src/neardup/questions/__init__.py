"""What one can ask beside a run."""
