"""The algorithm, one file a stage: functions from Arrow batches to Arrow batches that know no engine."""
