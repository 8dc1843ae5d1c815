"""Starting and stopping the service: what it asks for, tells and refuses."""

from __future__ import annotations

import http.client
import itertools
import json
import signal
import socket
import ssl
import subprocess

import pytest

import neardup
from neardup.errors import ConfigError, DataError, NearDupError
from neardup.web.service.launch import ServiceOptions, serve_indexes
from neardup.web.tokens import TokenFile
from support.server_process import Started

FERRY = "the ferry to the island leaves at nine from the second pier"
POST = ("POST", json.dumps({"id": "b", "text": "quite another text of some words"}))
JSON = {"Content_Type": "application/json"}
PUT = "/v1/collections/pages/put"


@pytest.fixture
def path(tmp_path):
    with neardup.Index.create(tmp_path / "pages.index", size=2) as index:
        index.insert("a", FERRY)
    return tmp_path / "pages.index"


def token_in(started):
    return next(word for word in " ".join(started.lines).split() if word.startswith("ndup_"))


def test_a_token_is_printed_when_there_is_none_and_stopping_drains(path, tmp_path):
    log = tmp_path / "access.jsonl"
    started = Started(path, "--write", "--access-log", log)
    token = token_in(started)
    assert started.ask(PUT, *POST, **JSON)[0].status == 401
    assert started.ask(PUT, *POST, **JSON, Authorization=f"Bearer {token}")[0].status == 201
    assert started.get("/v1/collections/pages/info")["documents"] == 2
    # The page and its routes are still there.
    assert started.get("/v1/info")["kind"] == "index"
    assert started.ask("/")[0].status == 200
    assert started.stop() == 0
    assert token not in log.read_text("utf-8")
    assert log.stat().st_mode & 0o777 == 0o600
    with neardup.Index.open(path) as index:
        assert sorted(index.ids()) == ["a", "b"]


@pytest.mark.long
def test_the_token_of_the_environment_and_those_of_a_file_are_used(path, tmp_path):
    tokens = TokenFile(tmp_path / "tokens.json")
    secret, _ = tokens.new(collection="pages", scope="write")
    environment = {"NEARDUP_TOKEN": "of the environment", "NEARDUP_TOKEN_FILE": str(tokens.path)}
    started = Started(path, "--write", **environment)
    assert "Token" not in "".join(started.lines)
    for token in (secret, "of the environment"):
        assert started.ask(PUT, *POST, **JSON, Authorization=f"Bearer {token}")[0].status < 300
    assert started.ask(PUT, *POST, **JSON, Authorization="Bearer other")[0].status == 401
    assert started.stop(signal.SIGINT) == 0


def test_a_socket_is_for_this_user_alone_and_needs_no_token(path, tmp_path):
    place = tmp_path / "service.sock"
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(str(place))
    stale.close()
    started = Started(path, "--write", "--unix-socket", place)
    assert place.stat().st_mode & 0o777 == 0o600
    connection = http.client.HTTPConnection("localhost")
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.connect(str(place))
    connection.request(POST[0], PUT, POST[1], {"Content-Type": "application/json"})
    assert connection.getresponse().status == 201
    connection.close()
    assert started.stop() == 0
    assert not place.exists()


def test_beyond_loopback_every_request_needs_a_token_and_tls_is_a_proxys(path):
    started = Started(path, "--host", "0.0.0.0")  # noqa: S104
    told = "".join(started.lines)
    assert "Traffic is not encrypted" in told
    started.netloc = f"127.0.0.1:{started.url.rstrip('/').rpartition(':')[2]}"
    for place in ("/v1/collections", "/v1/info", "/metrics", "/v1/collections/pages/info"):
        assert started.ask(place)[0].status == 401
    assert started.ask("/healthz")[0].status == 200
    header = {"Authorization": f"Bearer {token_in(started)}"}
    assert started.ask("/v1/info", **header)[0].status == 200
    assert started.ask("/v1/collections", **header, Host="data.example")[0].status == 403
    assert started.stop() == 0


@pytest.mark.long
def test_tls(path, tmp_path):
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
            *("-nodes", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"),
            *("-keyout", tmp_path / "key.pem", "-out", tmp_path / "cert.pem"),
        ],
        check=True,
        capture_output=True,
    )
    files = ("--tls-cert", tmp_path / "cert.pem", "--tls-key", tmp_path / "key.pem")
    started = Started(path, *files)
    assert started.url.startswith("https://")
    context = ssl.create_default_context(cafile=tmp_path / "cert.pem")
    port = int(started.netloc.rpartition(":")[2])
    connection = http.client.HTTPSConnection("localhost", port, context=context)
    origin = {"Origin": f"https://localhost:{port}"}
    connection.request("GET", "/v1/collections/pages/info", headers=origin)
    assert json.loads(connection.getresponse().read())["documents"] == 1
    connection.close()
    assert started.stop() == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"key": "key.pem"}, "needs `tls_cert`"),
        ({"certificate": "missing.pem"}, "does not exist"),
        ({"certificate": "missing.pem", "unix_socket": "x"}, "takes no `tls_cert`"),
        ({"token": "short"}, "5 characters"),
        ({"origins": ["example.org"]}, "must be a site"),
        ({"origins": ["https://example.org/page"]}, "must be a site"),
    ],
)
def test_wrong_options_are_errors(path, options, message):
    with pytest.raises((ConfigError, DataError), match=message):
        serve_indexes([str(path)], ServiceOptions(**options), print)


def test_two_collections_of_one_name_and_what_is_no_index_are_errors(path, tmp_path):
    (tmp_path / "other").mkdir()
    neardup.Index.create(tmp_path / "other" / "pages").close()
    with pytest.raises(ConfigError, match="both the collection 'pages'"):
        serve_indexes([str(path), str(tmp_path / "other" / "pages")], ServiceOptions(), print)
    with pytest.raises(DataError, match="is not an index"):
        serve_indexes([str(path), str(tmp_path)], ServiceOptions(), print)


def test_a_path_with_something_else_is_no_place_for_a_socket(path, tmp_path):
    (tmp_path / "file").write_text("kept")
    options = ServiceOptions(unix_socket=str(tmp_path / "file"))
    with pytest.raises(DataError, match="is not a socket"):
        serve_indexes([str(path)], options, print)
    assert (tmp_path / "file").read_text() == "kept"
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(tmp_path / "sock"))
        other.listen(1)
        options = ServiceOptions(unix_socket=str(tmp_path / "sock"))
        with pytest.raises(DataError, match="another server listens"):
            serve_indexes([str(path)], options, print)


def test_a_writer_in_another_process_is_named(path, monkeypatch):
    monkeypatch.setattr("neardup.index.writer_lock.time.monotonic", itertools.count(0, 11).__next__)
    with neardup.Index.open(path), pytest.raises(NearDupError, match="another process is writing"):
        serve_indexes([str(path)], ServiceOptions(write=True), print)
