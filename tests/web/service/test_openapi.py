"""The description of the service: schemathesis makes requests of it, with and without tokens."""

from __future__ import annotations

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings

import neardup
from support.service import TOKEN, serving


@pytest.mark.parametrize("has_token", [True, False])
def test_schemathesis_finds_nothing(tmp_path, has_token):
    path = tmp_path / "pages.index"
    with neardup.Index.create(path, size=2) as index:
        index.insert("a", "one two three four")
    with serving(path) as service:
        address = f"http://127.0.0.1:{service.server.port}/openapi.json"
        schema = schemathesis.openapi.from_url(address)
        checks = [
            schemathesis.checks.not_a_server_error,
            schemathesis.checks.response_schema_conformance,
            schemathesis.checks.status_code_conformance,
            schemathesis.checks.content_type_conformance,
        ]
        num_asked = 0
        for operation in schema.get_all_operations():
            made = operation.ok()

            @settings(
                max_examples=8,
                deadline=None,
                database=None,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            )
            @given(case=made.as_strategy())
            def ask(case):
                nonlocal num_asked
                if "name" in case.path_parameters:
                    case.path_parameters["name"] = "pages"
                case.headers = dict(case.headers or {})
                if has_token:
                    case.headers["Authorization"] = f"Bearer {TOKEN}"
                answer = case.call()
                case.validate_response(answer, checks=checks)
                num_asked += 1

            ask()
        assert num_asked > 100
        assert service.send("GET", "/healthz").status == 200
