"""DuckDB: every distinct line of at least eight words once, as `sort -u` would, and the texts put together again."""

import tempfile
from pathlib import Path

import documents
import duckdb

STEPS = """
CREATE TABLE lines AS
    SELECT id, generate_subscripts(parts, 1) AS number, unnest(parts) AS line
    FROM (SELECT id, string_split(text, chr(10)) AS parts FROM read_parquet('{source}'));
CREATE TABLE kept AS
    SELECT id, number, line FROM lines
    WHERE array_length(string_split_regex(trim(line), '\\s+')) < 8
    UNION ALL
    SELECT id, number, line FROM lines
    WHERE array_length(string_split_regex(trim(line), '\\s+')) >= 8
    QUALIFY row_number() OVER (PARTITION BY lower(line) ORDER BY id, number) = 1;
COPY (SELECT id, string_agg(line, chr(10) ORDER BY number) AS text FROM kept GROUP BY id)
    TO '{kept}' (FORMAT parquet);
"""


def main():
    source, output, _ = documents.from_command_line()
    pattern = f"{source}/*.parquet" if source.is_dir() else str(source)
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder, "kept.parquet")
        with duckdb.connect(f"{folder}/lines.db", config={"memory_limit": "4GB"}) as connection:
            connection.execute(f"SET temp_directory = '{folder}'")
            connection.execute(STEPS.format(source=pattern, kept=kept))
        size = kept.stat().st_size
    documents.write_lines(output, [(str(size),)])


if __name__ == "__main__":
    main()
