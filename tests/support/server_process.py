"""`neardup serve` in a process of its own, and requests to it."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
from urllib.parse import urlsplit

START = "from neardup.cli.main import main; main()"


class Started:
    """A server in a process of its own."""

    command = (sys.executable, "-c", START)

    def __init__(self, path, *arguments, **environment):
        self.process = subprocess.Popen(
            [*self.command, "serve", str(path), "--port", "0", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONUNBUFFERED": "1", "XDG_CONFIG_HOME": "/nowhere"} | environment,
        )
        # The lines up to the one that says that all is ready.
        self.lines = []
        for line in self.process.stdout:
            self.lines.append(line)
            if "Stop with Ctrl-C" in line:
                break
        words = " ".join(self.lines).split()
        self.url = next((word for word in words if word.startswith("http")), "")
        self.netloc = urlsplit(self.url).netloc

    def ask(self, path, method="GET", body=None, **headers):
        """Send a request; again, as the answer asks for, while a busy machine is too slow for the server's limit."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        for _ in range(10):
            connection = http.client.HTTPConnection(self.netloc, timeout=120)
            connection.request(method, path, body, sent)
            answer = connection.getresponse()
            content = answer.read()
            connection.close()
            if answer.status != 503:
                break
        return answer, content

    def get(self, path):
        answer, content = self.ask(path)
        assert answer.status == 200, content
        return json.loads(content)

    def stop(self, kind=signal.SIGTERM):
        self.process.send_signal(kind)
        said = self.process.communicate(timeout=120)[1]
        assert "Traceback" not in said
        return self.process.returncode
