"""datasketch: MinHash and MinHashLSH with the bands it chooses for the threshold (9 of 13), unverified; pairs.

With the argument `filter`, candidates are also filtered by signature, as its users usually do.
"""

import datasketch
import documents

source, output, words = documents.from_command_line()
lsh = datasketch.MinHashLSH(threshold=documents.THRESHOLD, num_perm=documents.NUM_PERM)
signatures = {}


def pairs():
    """Query the index with each document before it is inserted."""
    for ids, sets in documents.read_shingles(source):
        for doc_id, shingles in zip(ids, sets, strict=True):
            signature = datasketch.MinHash(num_perm=documents.NUM_PERM)
            signature.update_batch([shingle.encode() for shingle in shingles])
            for other in lsh.query(signature):
                if (
                    "filter" not in words
                    or signatures[other].jaccard(signature) >= documents.THRESHOLD
                ):
                    yield other, doc_id
            lsh.insert(doc_id, signature)
            if "filter" in words:
                signatures[doc_id] = signature


documents.write_lines(output, pairs())
