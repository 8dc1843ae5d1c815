"""The file of tokens: what it stores, who may read it, and how it is noticed."""

from __future__ import annotations

import hmac
import os
import time

import pytest

from neardup.errors import ConfigError, DataError
from neardup.web import tokens
from neardup.web.tokens import TokenFile, default_path


@pytest.fixture
def file(tmp_path):
    return TokenFile(tmp_path / "folder" / "tokens.json")


def test_a_token_is_found_until_it_is_revoked_also_by_another_process(file):
    secret, stored = file.new(collection="pages", scope="write")
    running = TokenFile(file.path)
    assert running.find(secret) == stored
    assert (stored.collection, stored.scope, stored.expires) == ("pages", "write", None)
    file.revoke(stored.token_id)
    assert running.find(secret) is None
    with pytest.raises(DataError, match="there is no token"):
        file.revoke(stored.token_id)


def test_the_file_has_no_secret_and_is_for_this_user_alone(file):
    secret, stored = file.new()
    content = file.path.read_text("utf-8")
    assert secret.rpartition("_")[2] not in content
    assert stored.token_id in content
    assert file.path.stat().st_mode & 0o777 == 0o600
    assert file.path.parent.stat().st_mode & 0o777 == 0o700
    file.path.chmod(0o640)
    with pytest.raises(DataError, match="can be read by other users"):
        TokenFile(file.path).listed()


def test_an_expired_token_is_unknown(file, monkeypatch):
    secret, _ = file.new(expires=time.time() + 60)
    assert file.find(secret) is not None
    now = time.time()
    monkeypatch.setattr(tokens.time, "time", lambda: now + 61)
    assert file.find(secret) is None


@pytest.mark.parametrize(
    "wrong", ["", "ndup_", "ndup_00000000_" + "A" * 43, "x" * 100_000, "ndup_\0", "ü" * 60]
)
def test_what_is_no_token_is_unknown(file, wrong):
    file.new()
    assert file.find(wrong) is None


def test_another_secret_of_a_known_id_is_unknown(file):
    secret, _ = file.new()
    other, _ = file.new()
    assert file.find(secret[:14] + other[14:]) is None
    assert file.find(secret[:-1]) is None


def test_every_comparison_takes_constant_time_also_of_an_unknown_id(file, monkeypatch):
    secret, _ = file.new()
    compared = []
    compare = hmac.compare_digest
    monkeypatch.setattr(
        tokens.hmac, "compare_digest", lambda *two: compared.append(two) or compare(*two)
    )
    for given in (secret, secret[:-1] + "A", "ndup_00000000_" + "A" * 43, "nonsense"):
        file.find(given)
    assert [(len(one), len(two)) for one, two in compared] == [(32, 32)] * 4


@pytest.mark.parametrize("content", ["", "[]", '{"version": 1}', '{"tokens": [1]}', "\udc80"])
def test_a_file_of_something_else_is_an_error_that_names_it(file, content):
    file.path.parent.mkdir()
    file.path.write_bytes(content.encode("utf-8", "surrogateescape"))
    file.path.chmod(0o600)
    with pytest.raises(DataError, match=r"tokens\.json is not a file of tokens"):
        file.listed()


def test_a_link_and_a_pipe_are_not_read(file, tmp_path):
    file.path.parent.mkdir()
    (tmp_path / "other").write_text("{}")
    file.path.symlink_to(tmp_path / "other")
    with pytest.raises(DataError, match="cannot be read"):
        file.listed()


def test_wrong_arguments_are_errors(file):
    with pytest.raises(ConfigError, match="`scope`"):
        file.new(scope="root")
    with pytest.raises(ConfigError, match="in the past"):
        file.new(expires=1.0)
    with pytest.raises(ConfigError, match="`collection`"):
        file.new(collection="")
    assert not file.path.exists()


def test_the_default_file_is_in_the_folder_for_configuration(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CONFIG_HOME", os.fspath(tmp_path))
    assert default_path() == tmp_path / "neardup" / "tokens.json"
