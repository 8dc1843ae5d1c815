"""Plain Python: every window of fifty words in a dict, and the windows that stood before."""

import documents

MIN_WORDS = 50

source, output, _ = documents.from_command_line()
first = {}
repeated = 0
for ids, texts in documents.read_batches(source):
    for doc_id, text in zip(ids, texts, strict=True):
        words = documents.WORDS.findall(text.lower())
        for at in range(len(words) - MIN_WORDS + 1):
            window = hash(tuple(words[at : at + MIN_WORDS]))
            repeated += first.setdefault(window, doc_id) != doc_id
documents.write_lines(output, [(str(repeated),)])
