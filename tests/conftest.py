"""What all tests share: one process that starts runs of the command line."""

import pytest

from runs.programs import Programs


@pytest.fixture(scope="session")
def programs(tmp_path_factory):
    """Start runs of the command line, quickly."""
    started = Programs(tmp_path_factory.mktemp("spoken"))
    yield started
    started.close()
