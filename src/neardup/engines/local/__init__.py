"""One machine: threads, tables in memory or on disk, a limit of memory."""
