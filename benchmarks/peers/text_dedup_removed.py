"""text-dedup: its MinHash command as its README calls it, 2 processes, own words, unverified; removed documents."""

import sys
import tempfile
from pathlib import Path

import datasets
import documents
from text_dedup.minhash import main

source, output, _ = documents.from_command_line()
with tempfile.TemporaryDirectory() as folder:
    kept_folder = Path(folder) / "kept"
    options = {
        "path": "parquet",
        "data_files": str(source / "*.parquet" if source.is_dir() else source),
        "split": "train",
        "cache_dir": folder,
        "column": "text",
        "ngram": documents.SHINGLE_WORDS,
        "threshold": documents.THRESHOLD,
        "num_perm": documents.NUM_PERM,
        "num_proc": 2,
        "output": str(kept_folder),
    }
    main([f"--{name}={value}" for name, value in options.items()], standalone_mode=False)
    print("text-dedup done", file=sys.stderr)
    kept = datasets.load_from_disk(kept_folder)
    kept_ids = set(kept["id"])
    # It silently drops documents of fewer than 5 words; they do not count as removed duplicates.
    removed = [
        (doc_id,)
        for ids, texts in documents.read_batches(source)
        for doc_id, text in zip(ids, texts, strict=True)
        if doc_id not in kept_ids
        and len(documents.WORDS.findall(text.lower())) >= documents.SHINGLE_WORDS
    ]
documents.write_lines(output, removed)
