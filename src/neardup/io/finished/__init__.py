"""A run that is done: its report, its tables, the decisions about its documents."""
