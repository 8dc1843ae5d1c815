"""How long does a newcomer wait: import, the first demo (every kernel compiled), the second (loaded from the cache)?"""

import os
import subprocess
import sys
import tempfile
import time

import harness


def seconds(code, cache):
    environment = os.environ | {"NUMBA_CACHE_DIR": cache}
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, env=environment, stdout=subprocess.DEVNULL)  # noqa: S603
    return time.perf_counter() - began


def main():
    options = harness.arguments(__doc__)
    demo = "import sys; sys.argv = ['neardup', 'demo']; from neardup.cli.main import main; main()"
    with tempfile.TemporaryDirectory() as cache:
        first = seconds(demo, cache)
        second = min(seconds(demo, cache) for _ in range(options.repeat))
        nothing = min(seconds("pass", cache) for _ in range(options.repeat))
        imported = min(seconds("import neardup", cache) for _ in range(options.repeat))
    rows = [
        {"what": "import neardup, less the start of Python", "seconds": imported - nothing},
        {"what": "first demo: all kernels compiled", "seconds": first},
        {"what": "second demo: kernels from the cache", "seconds": second},
    ]
    harness.publish("start", rows, harness.machine())


if __name__ == "__main__":
    main()
