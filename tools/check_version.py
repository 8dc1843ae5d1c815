"""Compare the tag of a release with the version in the code and at the head of the changelog."""

from __future__ import annotations

import sys
from pathlib import Path

from neardup.version import VERSION

if __name__ == "__main__":
    tag = sys.argv[1]
    if tag != f"v{VERSION}":
        sys.exit(f"the tag is {tag}, the version in src/neardup/version.py {VERSION}")
    changelog = Path("CHANGELOG.md").read_text("utf-8")
    if f"## [{VERSION}]" not in changelog:
        sys.exit(f"CHANGELOG.md has no section [{VERSION}]")
