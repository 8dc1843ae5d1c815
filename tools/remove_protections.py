"""Show that every protection of page and server has a test: remove each in a copy of the package, run its tests.

    python tools/remove_protections.py [WORDS]

With words, only the protections whose name has one of them. Exits with 1 if all tests pass without
a protection.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
SERVER, BROWSER, FILE, ATTACKS = (
    f"tests/web/test_{name}.py" for name in ("server", "browser", "report_file", "attacks")
)


class Protection(NamedTuple):
    """What is protected, and the text of a source without which it is not."""

    name: str
    source: str
    old: str
    new: str
    tests: str


PROTECTIONS = (
    Protection(
        "host allow-list",
        "guard.py",
        "if not _HOSTS.fullmatch(",
        "if None is _HOSTS.fullmatch and (",
        SERVER,
    ),
    Protection(
        "own origin only",
        "guard.py",
        "if origin is not None and origin",
        "if False and origin",
        SERVER,
    ),
    Protection(
        "own site only", "guard.py", "if site is not None and site", "if False and site", ATTACKS
    ),
    Protection(
        "no second header hides the first",
        "guard.py",
        'f"{headers[name]}, {value}" if name in headers else value',
        "value",
        ATTACKS,
    ),
    Protection(
        "no CORS header",
        "problems.py",
        '"no-store"),',
        '"no-store"), (b"access-control-allow-origin", b"*"),',
        SERVER,
    ),
    Protection(
        "frames denied by header", "problems.py", '    (b"x-frame-options", b"DENY"),\n', "", SERVER
    ),
    Protection(
        "frames denied by policy",
        "server.py",
        "connect-src 'self'; frame-ancestors 'none'",
        "connect-src 'self'",
        SERVER,
    ),
    Protection(
        "policy on every answer",
        "problems.py",
        ', (b"content-security-policy", policy.encode())]',
        "]",
        SERVER,
    ),
    Protection(
        "script by hash",
        "page.py",
        "script-src 'sha256-{_hash(script)}'",
        "script-src 'unsafe-inline'",
        FILE,
    ),
    Protection(
        "style by hash",
        "page.py",
        "style-src 'sha256-{_hash(style)}'",
        "style-src 'unsafe-inline'",
        FILE,
    ),
    Protection("nothing else is loaded", "page.py", "default-src 'none'; ", "", FILE),
    Protection("body limit by length", "guard.py", "or int(length) > MAX_BODY", "", SERVER),
    Protection(
        "body limit by count",
        "guard.py",
        "if len(body) + len(part) > MAX_BODY:",
        "if len(body) < 0:",
        SERVER,
    ),
    Protection(
        "text limit",
        "server.py",
        "if len(asked.text) > MAX_TEXT:",
        "if len(asked.text) < 0:",
        SERVER,
    ),
    Protection("nesting limit", "server.py", "except RecursionError:", "except KeyError:", SERVER),
    Protection(
        "concurrency limit",
        "guard.py",
        "if self._running >= self._limits.most_at_once:",
        "if self._running < 0:",
        SERVER,
    ),
    Protection(
        "time limit",
        "guard.py",
        "answer.take), self._limits.seconds)",
        "answer.take), None)",
        SERVER,
    ),
    Protection(
        "limit on bodies at once",
        "guard.py",
        "if self._bodies >= self._limits.most_bodies:",
        "if False:",
        ATTACKS,
    ),
    Protection(
        "time limit of a body",
        "guard.py",
        "timeout(self._limits.body_seconds)",
        "timeout(None)",
        ATTACKS,
    ),
    Protection(
        "limit on held bytes of bodies",
        "guard.py",
        "self._check_pending(len(body) + len(part), added=len(part))",
        "pass",
        ATTACKS,
    ),
    Protection(
        "limit on held bytes of answers",
        "guard.py",
        "self._check_pending(size, added=size)",
        "pass",
        ATTACKS,
    ),
    Protection(
        "time limit of sending",
        "guard.py",
        "timeout(self._limits.sending_seconds)",
        "timeout(None)",
        ATTACKS,
    ),
    Protection(
        "answers sent in pieces",
        "guard.py",
        "for first in range(0, max(size, 1), PIECE):\n                    stop = first + PIECE\n",
        "for first in (0,):\n                    stop = max(size, 1)\n",
        ATTACKS,
    ),
    Protection(
        "limit on the bytes of an answer",
        "served_index.py",
        "if num_bytes > MAX_ANSWER:",
        "if False:",
        ATTACKS,
    ),
    Protection(
        "time limit of headers",
        "connection.py",
        "call_later(self.seconds,",
        "call_later(1e6,",
        ATTACKS,
    ),
    Protection(
        "unread answers are dropped", "connection.py", "self.transport.abort()", "pass", ATTACKS
    ),
    Protection(
        "one error for what is not HTTP",
        "connection.py",
        "def send_400_response",
        "def _send_400_response",
        ATTACKS,
    ),
    Protection(
        "answers sent at once", "connection.py", "_TCP_NODELAY, 1)", "_TCP_NODELAY, 0)", ATTACKS
    ),
    Protection("loopback only", "server.py", "if host not in LOOPBACK:", "if host in ():", SERVER),
    Protection(
        "no path from a client",
        "server.py",
        "def document(doc_id: str)",
        "def document(doc_id: str, path: str = '')",
        SERVER,
    ),
    Protection("seed hidden in the file", "run_view.py", 'hidden = {"seed", ', "hidden = {", FILE),
    Protection(
        "seed hidden on the server", "run_view.py", 'hidden = {"seed", ', "hidden = {", SERVER
    ),
    Protection(
        "seed of an index hidden",
        "served_index.py",
        'shown = ("threshold",',
        'shown = ("seed", "threshold",',
        SERVER,
    ),
    Protection("< escaped in JSON", "page.py", '"<": "\\\\u003c", ', "", FILE),
    Protection("U+2028 escaped in JSON", "page.py", '"\\u2028": "\\\\u2028", ', "", FILE),
    Protection("U+2029 escaped in JSON", "page.py", ', "\\u2029": "\\\\u2029"', "", FILE),
    Protection(
        "texts are text nodes",
        "static/parts.js",
        "if (parts.length === 1) return parts[0];",
        "if (parts.length === 1) return html`<span dangerouslySetInnerHTML=${{ __html: parts[0] }} />`;",
        BROWSER,
    ),
    Protection(
        "no source makes HTML of text",
        "static/parts.js",
        "if (parts.length === 1) return parts[0];",
        "if (parts.length === 1) return html`<span dangerouslySetInnerHTML=${{ __html: parts[0] }} />`;",
        FILE,
    ),
    Protection(
        "bidi and control characters spelled out",
        "static/text.js",
        "for (const found of text.matchAll(isLine ? HIDDEN_IN_LINE : HIDDEN))",
        "for (const found of [])",
        BROWSER,
    ),
    Protection(
        "line ends in ids spelled out",
        "static/text.js",
        "isLine ? HIDDEN_IN_LINE : HIDDEN",
        "HIDDEN",
        BROWSER,
    ),
    Protection(
        "very long ids are cut",
        "static/parts.js",
        "if (id.length <= MAX_OF_ID)",
        "if (id.length >= 0)",
        BROWSER,
    ),
    Protection(
        "no formula in CSV", "static/marks.js", '? "\'" + text : text', "? text : text", BROWSER
    ),
)


def has_failing_test(protection: Protection, package: Path) -> bool:
    """Remove a protection in a copy of the package; return whether a test fails."""
    path = package / "web" / protection.source
    whole = path.read_text("utf-8")
    if whole.count(protection.old) != 1:
        raise SystemExit(
            f"{protection.source} has {protection.old!r} {whole.count(protection.old)} times, not once"
        )
    path.write_text(whole.replace(protection.old, protection.new), "utf-8")
    try:
        done = subprocess.run(  # noqa: S603
            [
                sys.executable,
                "-m",
                "pytest",
                "-x",
                "-q",
                "-p",
                "no:cacheprovider",
                protection.tests,
            ],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": str(package.parent)},
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        path.write_text(whole, "utf-8")
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    print(
        f"{protection.name}: {failed[0].split('::')[-1].split(' - ')[0] if failed else 'NO TEST FAILS'}",
        flush=True,
    )
    return bool(failed)


def main() -> None:
    words = sys.argv[1:]
    chosen = [one for one in PROTECTIONS if not words or any(word in one.name for word in words)]
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder) / "neardup"
        shutil.copytree(ROOT / "src" / "neardup", package)
        untested = [one.name for one in chosen if not has_failing_test(one, package)]
    if untested:
        raise SystemExit(f"no test fails without: {', '.join(untested)}")


if __name__ == "__main__":
    main()
