"""Files on disk: the work folder of a run, its checkpoints, and the tables that it writes."""
