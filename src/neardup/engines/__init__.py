"""Where stages run."""
