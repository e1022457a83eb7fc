"""The OpenAPI document, by an independent validator and by what real clients send."""

import json
import urllib.request
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

FIXTURES = Path(__file__).parents[3] / "tests/fixtures/protocol"
DIALECTS = ("anthropic", "ollama", "openai", "responses")


@pytest.fixture(scope="module")
def document(server):
    with urllib.request.urlopen(f"{server.url}/openapi.json") as reply:
        return json.load(reply)


def validator(document, schema):
    """A validator of one schema of the document, whose references begin at the document."""
    return Draft202012Validator({**schema, "components": document["components"]})


def schema_of(document, path, *, of_reply=False):
    path = path.split("?")[0]
    path = path if path.startswith(("/v1", "/api", "/anthropic")) else f"/v1{path}"
    operation = document["paths"][path]["post"]
    holder = operation["responses"]["200"] if of_reply else operation["requestBody"]
    return holder["content"]["application/json"]["schema"]


def cases(name):
    return [
        case
        for dialect in DIALECTS
        for case in sorted((FIXTURES / dialect).iterdir())
        if (case / name).exists() and not case.name.startswith("refused")
    ]


def test_the_document_is_valid(document):
    errors = [error.message for error in OpenAPIV31SpecValidator(document).iter_errors()]
    assert not errors


@pytest.mark.parametrize("case", cases("expected_request.json"), ids=lambda case: f"{case.parent.name}/{case.name}")
def test_requests_that_are_taken_are_told_of(document, case):
    request = json.loads((case / "request.json").read_text())
    schema = schema_of(document, request["path"])
    errors = [f"{error.json_path}: {error.message}"[:300] for error in validator(document, schema).iter_errors(request["body"])]
    assert not errors


@pytest.mark.parametrize("case", cases("reply.json"), ids=lambda case: f"{case.parent.name}/{case.name}")
def test_replies_are_as_told(document, case):
    request = json.loads((case / "request.json").read_text())
    reply = json.loads((case / "reply.json").read_text())
    schema = schema_of(document, request["path"], of_reply=True)
    errors = [f"{error.json_path}: {error.message}"[:300] for error in validator(document, schema).iter_errors(reply)]
    assert not errors
