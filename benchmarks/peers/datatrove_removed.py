"""datatrove: its four MinHash stages with their defaults (14 x 8), local executor, 2 workers, own words; removed."""

import json
import tempfile
from pathlib import Path

import documents
from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.dedup import (
    MinhashDedupBuckets,
    MinhashDedupCluster,
    MinhashDedupFilter,
    MinhashDedupSignature,
)
from datatrove.pipeline.dedup.minhash import MinhashConfig
from datatrove.pipeline.readers import ParquetReader
from datatrove.pipeline.writers import JsonlWriter


def stages(source, folder):
    """The pipelines of the four stages, each with its number of tasks."""
    config = MinhashConfig(n_grams=documents.SHINGLE_WORDS)
    tasks = len(documents.files(source))
    place = source if source.is_dir() else source.parent
    reader = ParquetReader(str(place), glob_pattern="*.parquet" if source.is_dir() else source.name)
    excluded = JsonlWriter(f"{folder}/removed", compression=None)
    yield [reader, MinhashDedupSignature(f"{folder}/signatures", config)], tasks
    yield (
        [MinhashDedupBuckets(f"{folder}/signatures", f"{folder}/buckets", config=config)],
        config.num_buckets,
    )
    yield [MinhashDedupCluster(f"{folder}/buckets", f"{folder}/clusters", config=config)], 1
    keeper = JsonlWriter(f"{folder}/kept", compression=None)
    yield (
        [reader, MinhashDedupFilter(f"{folder}/clusters", exclusion_writer=excluded), keeper],
        tasks,
    )


def main():
    source, output, _ = documents.from_command_line()
    with tempfile.TemporaryDirectory() as folder:
        for number, (pipeline, tasks) in enumerate(stages(source, folder)):
            LocalPipelineExecutor(
                pipeline, tasks=tasks, workers=2, logging_dir=f"{folder}/logs-{number}"
            ).run()
        lines = (
            line for file in sorted(Path(folder, "removed").glob("*.jsonl")) for line in file.open()
        )
        documents.write_lines(output, ((json.loads(line)["id"],) for line in lines))


if __name__ == "__main__":
    main()
