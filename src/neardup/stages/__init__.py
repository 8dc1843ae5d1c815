"""The algorithm, one file per stage: functions from Arrow batches to Arrow batches, independent of the engine."""
