"""Legacy text completions and tokenization."""

from conftest import MODEL, raw_json


def test_text_completion_has_its_own_shape(client):
    reply = client.completions.create(
        model=MODEL, prompt="The capital of France is", temperature=0, max_tokens=5
    )
    assert reply.object == "text_completion"
    assert reply.id.startswith("cmpl-")
    assert "Paris" in reply.choices[0].text
    assert reply.choices[0].finish_reason == "length"
    assert reply.usage.completion_tokens == 5


def test_token_prompts_equal_text_prompts(client, server):
    prompt = "The capital of France is"
    status, tokens = raw_json(server, "POST", "/v1/tokenize", {"model": MODEL, "prompt": prompt})
    assert status == 200
    assert tokens["count"] == len(tokens["tokens"])
    text = client.completions.create(model=MODEL, prompt=prompt, temperature=0, max_tokens=6)
    ids = client.completions.create(
        model=MODEL, prompt=tokens["tokens"], temperature=0, max_tokens=6
    )
    assert ids.choices[0].text == text.choices[0].text
    status, back = raw_json(
        server, "POST", "/v1/detokenize", {"model": MODEL, "tokens": tokens["tokens"]}
    )
    assert status == 200
    assert back["prompt"] == prompt


def test_several_prompts_give_a_choice_each(client):
    prompts = ["The capital of France is", "Two plus two equals", "The sky is"]
    reply = client.completions.create(model=MODEL, prompt=prompts, temperature=0, max_tokens=4)
    assert [choice.index for choice in reply.choices] == [0, 1, 2]
    for choice, prompt in zip(reply.choices, prompts, strict=True):
        alone = client.completions.create(model=MODEL, prompt=prompt, temperature=0, max_tokens=4)
        assert choice.text == alone.choices[0].text


def test_echo_returns_the_prompt_with_its_logprobs(client):
    prompt = "The capital of France is"
    reply = client.completions.create(
        model=MODEL, prompt=prompt, temperature=0, max_tokens=3, echo=True, logprobs=2
    )
    choice = reply.choices[0]
    assert choice.text.startswith(prompt)
    logprobs = choice.logprobs
    total = reply.usage.prompt_tokens + reply.usage.completion_tokens
    assert len(logprobs.tokens) == len(logprobs.token_logprobs) == len(logprobs.text_offset) == total
    assert logprobs.token_logprobs[0] is None
    assert all(value <= 0 for value in logprobs.token_logprobs[1:])
    assert "".join(logprobs.tokens) == choice.text


def test_stream_of_a_completion(client):
    options = dict(model=MODEL, prompt="Once upon a time", temperature=0, max_tokens=12)
    whole = client.completions.create(**options)
    pieces = list(client.completions.create(**options, stream=True))
    assert "".join(p.choices[0].text for p in pieces if p.choices) == whole.choices[0].text
    assert pieces[-1].choices[0].finish_reason == "length"
