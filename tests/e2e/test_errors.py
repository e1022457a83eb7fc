"""What a client sees when something is wrong."""

import openai
import pytest
from conftest import MODEL, raw, raw_json

QUESTION = [{"role": "user", "content": "Hi"}]


def test_unknown_model_is_404_with_a_hint(client):
    with pytest.raises(openai.NotFoundError) as caught:
        client.models.retrieve("HuggingFaceTB/SmolLM2-135M-Instrukt")
    assert caught.value.code == "model_not_found"
    assert MODEL in str(caught.value)


@pytest.mark.parametrize("name", ["gpt-5.5", "llama3.2:latest", "openai/gpt-4o-mini"])
def test_names_of_other_models_go_to_the_default(client, name):
    reply = client.chat.completions.create(model=name, messages=QUESTION, max_tokens=2)
    assert reply.model == MODEL
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve(name)


@pytest.mark.parametrize("reference", ["SmolLM2-135M-Instruct", "smollm2", MODEL.lower()])
def test_short_model_references_work(client, reference):
    reply = client.chat.completions.create(model=reference, messages=QUESTION, max_tokens=2)
    assert reply.model == MODEL


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("temperature", -1),
        ("temperature", "hot"),
        ("top_p", 1.5),
        ("max_tokens", -5),
        ("n", 0),
        ("top_logprobs", 50),
        ("response_format", {"type": "yaml"}),
        ("prediction", {"type": "content", "content": "x"}),
        ("logit_bias", {"999999999": 1}),
        ("messages", "hello"),
    ],
)
def test_bad_or_unsupported_values_are_refused_by_name(server, field, value):
    body = {"model": MODEL, "messages": QUESTION, "max_tokens": 2, "logprobs": True} | {field: value}
    status, reply = raw_json(server, "POST", "/v1/chat/completions", body)
    assert status == 400, reply
    assert reply["error"]["type"] == "invalid_request_error"
    assert field in (reply["error"]["param"] or ""), reply


def test_suffix_is_refused_by_name(client):
    with pytest.raises(openai.BadRequestError) as caught:
        client.completions.create(model=MODEL, prompt="a", suffix="b")
    assert caught.value.param == "suffix"


def test_unknown_fields_do_no_harm(server):
    body = {"model": MODEL, "messages": QUESTION, "max_tokens": 2, "x_vendor_hint": {"a": 1}}
    status, _ = raw_json(server, "POST", "/v1/chat/completions", body)
    assert status == 200


def test_malformed_json_is_400(server):
    status, headers, text = raw(server, "POST", "/v1/chat/completions", b'{"model": ')
    assert status == 400
    assert headers["content-type"].startswith("application/json")
    assert b"invalid_request_error" in text


def test_unknown_route_is_404_json(server):
    status, reply = raw_json(server, "GET", "/v1/nonsense")
    assert status == 404
    assert "/v1/nonsense" in reply["error"]["message"]


def test_wrong_method_is_405_json(server):
    status, reply = raw_json(server, "GET", "/v1/chat/completions")
    assert status == 405
    assert "error" in reply


def test_prompt_longer_than_the_context_is_400(client):
    with pytest.raises(openai.BadRequestError) as caught:
        client.completions.create(model=MODEL, prompt=[5] * 9000, max_tokens=1)
    assert caught.value.code == "context_length_exceeded"


def test_body_over_the_limit_is_413(server):
    status, _, _ = raw(server, "POST", "/v1/chat/completions", b" " * (64 * 1024 * 1024 + 1))
    assert status == 413


def test_models_are_listed_and_found(client):
    listed = client.models.list().data
    assert [model.id for model in listed] == [MODEL]
    assert client.models.retrieve(MODEL).id == MODEL
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("no/such")


def test_foreign_host_header_is_refused(server):
    status, _, _ = raw(server, "GET", "/v1/models", headers={"host": "evil.example"})
    assert status == 403
