"""`neardup token`: a token is shown once, listed without its secret, and revoked."""

from __future__ import annotations

import json


def test_new_list_and_revoke(run):
    made = run(
        "token", "new", "--collection", "pages", "--scope", "write", "--token-file", "t.json"
    )
    assert made.returncode == 0
    token = made.stdout.strip()
    assert token.startswith("ndup_")
    token_id = token.split("_")[1]
    listed = run("token", "list", "--token-file", "t.json")
    assert f"{token_id}  write  pages  made 20" in listed.stdout
    assert "does not end" in listed.stdout
    assert token.rpartition("_")[2] not in listed.stdout
    as_json = json.loads(run("token", "list", "--token-file", "t.json", "--json").stdout)
    assert [one["id"] for one in as_json["tokens"]] == [token_id]
    revoked = run("token", "revoke", token_id, "--token-file", "t.json")
    assert revoked.stdout == f"Revoked {token_id} (write on pages).\n"
    assert run("token", "list", "--token-file", "t.json").stdout == ""


def test_wrong_uses_are_errors(run):
    past = run("token", "new", "--expires", "2001-01-31", "--token-file", "t.json")
    assert (past.returncode, "in the past" in past.stderr) == (2, True)
    unknown = run("token", "revoke", "12345678", "--token-file", "t.json")
    assert (unknown.returncode, "there is no token" in unknown.stderr) == (1, True)


def test_a_token_as_json_has_its_facts(run):
    made = run("token", "new", "--expires", "2031-01-31", "--json", "--token-file", "t.json")
    facts = json.loads(made.stdout)
    assert set(facts) == {"token", "id", "scope", "collection", "created", "expires"}
    assert facts["expires"].startswith("2031-01-3")
