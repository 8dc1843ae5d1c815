"""The Java that Spark is tested with where the machine has none."""

from __future__ import annotations

import shutil

import pytest

from support import java


@pytest.mark.parametrize("has_home", [False, True])
def test_without_java_the_packaged_one_is_used(tmp_path, monkeypatch, has_home):
    monkeypatch.setattr(
        shutil, "which", lambda name, found=shutil.which: None if name == "java" else found(name)
    )
    environment = {"JAVA_HOME": str(tmp_path / "gone")} if has_home else {}
    home = java.java_home(environment, tmp_path)
    assert home == str(tmp_path)
    asked = "--add-modules=jdk.incubator.vector"
    assert java.version(f"{home}/bin/java", asked) >= java.MIN_JAVA
