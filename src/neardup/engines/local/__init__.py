"""The local engine: threads, tables in memory or on disk, a memory limit."""
