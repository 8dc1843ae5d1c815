"""Floor of every library that takes ready tokens: read the file and make the shingles in Python, find nothing."""

import documents

source, output, _ = documents.from_command_line()
for _ in documents.read_shingles(source):
    pass
documents.write_lines(output, [])
