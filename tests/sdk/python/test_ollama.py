"""`ollama`: chat, generate and what it asks about models."""

import httpx
import ollama
import pytest
from harness import questions as q
from harness.playback import MODEL

NAME = "qwen3-played:latest"


def user(text):
    return [{"role": "user", "content": text}]


@pytest.fixture(scope="module")
def client(server):
    return ollama.Client(host=server.url, timeout=60)


@pytest.mark.parametrize("model", [MODEL, NAME, "qwen3-played"])
def test_plain(client, model):
    reply = client.chat(model=model, messages=user(q.PLAIN))
    assert reply.message.content == q.PLAIN_ANSWER
    assert reply.message.role == "assistant"
    assert reply.done
    assert reply.done_reason == "stop"
    assert reply.prompt_eval_count > 5
    assert reply.eval_count > 5
    assert reply.total_duration > 0


def test_stream(client):
    parts = list(client.chat(model=MODEL, messages=user(q.PLAIN), stream=True))
    assert "".join(part.message.content for part in parts) == q.PLAIN_ANSWER
    assert len(parts) > 3
    assert [part.done for part in parts] == [False] * (len(parts) - 1) + [True]
    assert parts[-1].done_reason == "stop"


async def test_async_stream(server):
    client = ollama.AsyncClient(host=server.url)
    stream = await client.chat(model=MODEL, messages=user(q.PLAIN), stream=True)
    assert "".join([part.message.content async for part in stream]) == q.PLAIN_ANSWER


@pytest.mark.parametrize("stream", [False, True])
def test_tools_round_trip(client, stream):
    def ask():
        reply = client.chat(model=MODEL, messages=messages, tools=[q.weather], stream=stream)
        parts = list(reply) if stream else [reply]
        text = "".join(part.message.content or "" for part in parts)
        return text, [call for part in parts for call in part.message.tool_calls or []]

    messages = user(q.WARM_BOTH)
    text, calls = ask()
    assert [dict(call.function.arguments) for call in calls] == [
        {"city": "Paris"},
        {"city": "Oslo"},
    ]
    messages.append({"role": "assistant", "content": text, "tool_calls": calls})
    for call in calls:
        result = q.weather(**call.function.arguments)
        messages.append({"role": "tool", "tool_name": call.function.name, "content": result})
    text, calls = ask()
    assert text == q.WARM_BOTH_ANSWER
    assert not calls


@pytest.mark.parametrize("stream", [False, True])
def test_reasoning(client, stream):
    reply = client.chat(model=MODEL, messages=user(q.SUM), think=True, stream=stream)
    parts = list(reply) if stream else [reply]
    thought = "".join(part.message.thinking or "" for part in parts)
    assert thought.strip() == q.SUM_REASONING
    assert "".join(part.message.content or "" for part in parts) == q.SUM_ANSWER


def test_reasoning_switched_off(client):
    reply = client.chat(model=MODEL, messages=user(q.SUM), think=False)
    assert reply.message.content == q.SUM_ANSWER
    assert not reply.message.thinking


def test_generate(client):
    reply = client.generate(model=MODEL, prompt=q.PLAIN)
    assert reply.response == q.PLAIN_ANSWER
    parts = list(client.generate(model=MODEL, prompt=q.PLAIN, stream=True))
    assert "".join(part.response for part in parts) == q.PLAIN_ANSWER
    raw = client.generate(model=MODEL, prompt="Once upon", raw=True)
    assert raw.response == " a time there was a king."


def test_a_gap_is_filled(client):
    assert "insert" in client.show(MODEL).capabilities
    filled = client.generate(model=MODEL, prompt="Once upon", suffix="The end.")
    assert filled.response == " a time there was a king."
    with pytest.raises(ollama.ResponseError, match="system"):
        client.generate(model=MODEL, prompt="Once upon", suffix="The end.", system="Be brief.")


def test_a_gap_is_filled_as_editors_ask(server):
    gap = {
        "input_prefix": "Once upon",
        "input_suffix": "The end.",
        "input_extra": [{"filename": "tales.txt", "text": "There was a king.\n"}],
        "n_predict": 32,
        "samplers": ["top_k", "top_p", "infill"],
        "response_fields": ["content", "timings/predicted_n"],
    }
    reply = httpx.post(f"{server.url}/infill", json=gap).json()
    assert reply["content"] == " a time there was a king."
    assert reply["timings/predicted_n"] > 5


def test_options(client):
    cut = client.chat(model=MODEL, messages=user(q.PLAIN), options={"num_predict": 3})
    assert cut.done_reason == "length"
    assert cut.eval_count == 3
    stopped = client.chat(model=MODEL, messages=user(q.PLAIN), options={"stop": ["ance is"]})
    assert stopped.message.content == "The capital of Fr"


def test_models(client):
    listed = client.list().models
    assert len({model.digest for model in listed}) == len(listed)
    assert any("qwen3-played" in model.model for model in listed)
    shown = client.show(MODEL)
    assert {"completion", "tools", "thinking"} <= set(shown.capabilities)
    assert shown.modelinfo["general.architecture"] == "qwen3"
    assert "<|im_start|>" in shown.template


def test_loaded_models(client):
    client.generate(model=MODEL, prompt="", keep_alive="5m")
    assert any("qwen3-played" in model.model for model in client.ps().models)
    client.generate(model=MODEL, prompt="", keep_alive=0)
    assert not any("qwen3-played" in model.model for model in client.ps().models)


def test_unknown_model(client):
    with pytest.raises(ollama.ResponseError) as caught:
        client.chat(model="no/such", messages=user(q.PLAIN))
    assert caught.value.status_code == 404
    assert "no/such" in caught.value.error


def test_bad_value(client):
    with pytest.raises(ollama.ResponseError) as caught:
        client.chat(model=MODEL, messages=user(q.PLAIN), options={"temperature": -1})
    assert caught.value.status_code == 400
    assert "temperature" in caught.value.error


@pytest.mark.parametrize("stream", [False, True])
def test_context_length(client, stream):
    with pytest.raises(ollama.ResponseError) as caught:
        reply = client.chat(model=MODEL, messages=user(q.TOO_LONG), stream=stream)
        list(reply)
    assert caught.value.status_code == 400
    assert "context" in caught.value.error


def test_error_in_the_middle_of_a_stream(client):
    said = []
    with pytest.raises(ollama.ResponseError, match="breaks off"):
        for part in client.chat(model=MODEL, messages=user(q.BREAK_OFF), stream=True):
            said.append(part.message.content)
    assert "".join(said).startswith("These are")


MARIO = {
    "from_": MODEL,
    "system": "You are Mario.",
    "messages": user("Hi") + [{"role": "assistant", "content": "Wahoo!"}],
    "parameters": {"num_predict": 4, "temperature": 0.5},
    "license": "MIT",
}
MARIO_ANSWER = "It is me, Mario."


def test_a_model_is_made_of_another(client, server):
    steps = [step.status for step in client.create(model="mario", **MARIO, stream=True)]
    assert steps[-1] == "success"
    assert client.create(model="mario", **MARIO).status == "success"
    try:
        assert "mario" in [model.model for model in client.list().models]
        shown = client.show("mario")
        assert shown.license == "MIT"
        assert 'SYSTEM """You are Mario."""' in shown.modelfile
        assert "num_predict" in shown.parameters
        assert shown.details.parent_model == MODEL
        assert shown.template == client.show(MODEL).template

        reply = client.chat(model="mario", messages=user("Who?"), options={"num_predict": 50})
        assert reply.message.content == MARIO_ANSWER
        reply = client.generate(model="mario", prompt="Who?", options={"num_predict": 50})
        assert reply.response == MARIO_ANSWER
        cut = client.chat(model="mario", messages=user("Who?"))
        assert (cut.done_reason, cut.eval_count) == ("length", 4)
        body = {"model": "mario", "messages": user("Who?"), "max_tokens": 50}
        openai = httpx.post(f"{server.url}/v1/chat/completions", json=body).json()
        assert openai["choices"][0]["message"]["content"] == MARIO_ANSWER
        anthropic = httpx.post(f"{server.url}/anthropic/v1/messages", json=body).json()
        assert anthropic["content"][0]["text"] == MARIO_ANSWER

        client.copy("mario", "luigi")
        client.delete("mario")
        reply = client.chat(model="luigi", messages=user("Who?"), options={"num_predict": 50})
        assert reply.message.content == MARIO_ANSWER
        client.delete("luigi")
        assert client.chat(model=MODEL, messages=user(q.PLAIN)).message.content == q.PLAIN_ANSWER
    finally:
        for name in {"mario", "luigi"} & {model.model for model in client.list().models}:
            client.delete(name)


def test_a_model_has_its_own_template(client):
    template = "{% for m in messages %}{{ m.content }}{% endfor %} capital of France"
    client.create(model="templated", from_=MODEL, template=template)
    try:
        assert client.show("templated").template == template
        for wrong in ["{{ .Prompt }}", "{% for"]:
            with pytest.raises(ollama.ResponseError, match="template"):
                client.create(model="templated", from_=MODEL, template=wrong)
        assert client.show("templated").template == template
    finally:
        client.delete("templated")


def test_what_no_model_can_be_made_of_is_refused(client):
    for field in [{"quantize": "q4_K_M"}, {"files": {"a.gguf": "sha256:0"}}, {"adapters": {"a": "b"}}]:
        (name,) = field
        with pytest.raises(ollama.ResponseError, match=name) as refused:
            client.create(model="refused", from_=MODEL, **field)
        assert refused.value.status_code == 400
    with pytest.raises(ollama.ResponseError) as refused:
        client.create(model="orphan", from_="gone")
    assert refused.value.status_code == 404
    with pytest.raises(ollama.ResponseError, match="another model"):
        client.create(model=MODEL, from_=MODEL, system="Be brief.")


def test_wrong_key(guarded_server):
    def client(key):
        return ollama.Client(
            host=guarded_server.url, headers={"authorization": f"Bearer {key}"}, timeout=60
        )

    with pytest.raises(ollama.ResponseError) as caught:
        client("wrong").chat(model=MODEL, messages=user(q.PLAIN))
    assert caught.value.status_code == 401
    reply = client("secret-key").chat(model=MODEL, messages=user(q.PLAIN))
    assert reply.message.content == q.PLAIN_ANSWER


def test_version(server):
    assert httpx.get(f"{server.url}/api/version").json()["version"]
