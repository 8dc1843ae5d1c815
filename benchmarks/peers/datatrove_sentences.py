"""datatrove: its sentence deduplication (spans of three sentences), local executor, 2 workers."""

import tempfile
from pathlib import Path

import documents
from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.dedup import SentenceDedupFilter, SentenceDedupSignature, SentenceFindDedups
from datatrove.pipeline.dedup.sentence_dedup import SentDedupConfig
from datatrove.pipeline.readers import ParquetReader
from datatrove.pipeline.writers import JsonlWriter


def main():
    source, output, _ = documents.from_command_line()
    config = SentDedupConfig(n_sentences=3, split_sentences=True, min_doc_words=0)
    tasks = len(documents.files(source))
    place = source if source.is_dir() else source.parent
    reader = ParquetReader(str(place), glob_pattern="*.parquet" if source.is_dir() else source.name)
    with tempfile.TemporaryDirectory() as folder:
        stages = (
            ([reader, SentenceDedupSignature(f"{folder}/signatures", config=config)], tasks),
            ([SentenceFindDedups(f"{folder}/signatures", f"{folder}/found", config=config)], 1),
            (
                [
                    reader,
                    SentenceDedupFilter(f"{folder}/found", config=config),
                    JsonlWriter(f"{folder}/kept", compression=None),
                ],
                tasks,
            ),
        )
        for number, (pipeline, count) in enumerate(stages):
            LocalPipelineExecutor(
                pipeline, tasks=count, workers=2, logging_dir=f"{folder}/logs-{number}"
            ).run()
        kept = sum(len(file.read_bytes()) for file in Path(folder, "kept").glob("*"))
    documents.write_lines(output, [(str(kept),)])


if __name__ == "__main__":
    main()
