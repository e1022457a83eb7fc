"""Chat completions through the official `openai` package, against the real model."""

import asyncio
import math

import pytest
from conftest import MODEL, raw_json

QUESTION = [{"role": "user", "content": "What is the capital of France?"}]


def test_greedy_answer_names_paris(client):
    reply = client.chat.completions.create(model=MODEL, messages=QUESTION, temperature=0)
    choice = reply.choices[0]
    assert "Paris" in choice.message.content
    assert choice.message.role == "assistant"
    assert choice.finish_reason == "stop"
    assert reply.object == "chat.completion"
    assert reply.model == MODEL
    assert reply.usage.prompt_tokens > 10
    assert 1 < reply.usage.completion_tokens < 60
    assert reply.usage.total_tokens == reply.usage.prompt_tokens + reply.usage.completion_tokens


def test_stream_says_the_same_as_the_whole_reply(client):
    whole = client.chat.completions.create(model=MODEL, messages=QUESTION, temperature=0)
    chunks = list(
        client.chat.completions.create(
            model=MODEL,
            messages=QUESTION,
            temperature=0,
            stream=True,
            stream_options={"include_usage": True},
        )
    )
    assert len({chunk.id for chunk in chunks}) == 1
    assert chunks[0].choices[0].delta.role == "assistant"
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert text == whole.choices[0].message.content
    finishes = [c.choices[0].finish_reason for c in chunks if c.choices]
    assert finishes[-1] == "stop"
    assert not any(finishes[:-1])
    assert chunks[-1].choices == []
    assert chunks[-1].usage.completion_tokens == whole.usage.completion_tokens
    assert all(chunk.usage is None for chunk in chunks[:-1])


def test_stream_without_usage_has_no_usage_chunk(client):
    chunks = list(
        client.chat.completions.create(model=MODEL, messages=QUESTION, max_tokens=3, stream=True)
    )
    assert all(chunk.choices for chunk in chunks)
    assert chunks[-1].choices[0].finish_reason == "length"


def test_text_arrives_piece_by_piece(client):
    chunks = list(
        client.chat.completions.create(
            model=MODEL,
            messages=[{"role": "user", "content": "Count from one to ten in words."}],
            temperature=0,
            max_tokens=24,
            stream=True,
        )
    )
    pieces = [c.choices[0].delta.content for c in chunks if c.choices and c.choices[0].delta.content]
    assert len(pieces) > 10


@pytest.mark.parametrize("field", ["max_tokens", "max_completion_tokens"])
def test_token_limit_ends_with_length(client, field):
    reply = client.chat.completions.create(
        model=MODEL, messages=QUESTION, temperature=0, **{field: 4}
    )
    assert reply.choices[0].finish_reason == "length"
    assert reply.usage.completion_tokens == 4


def test_stop_sequence_is_cut(client):
    reply = client.chat.completions.create(
        model=MODEL, messages=QUESTION, temperature=0, stop=["Paris"]
    )
    assert reply.choices[0].finish_reason == "stop"
    assert "Paris" not in reply.choices[0].message.content
    assert reply.choices[0].message.content.startswith("The capital of France is")


def test_stop_sequence_across_token_borders_in_a_stream(client):
    chunks = client.chat.completions.create(
        model=MODEL, messages=QUESTION, temperature=0, stop=["ital of Fra"], stream=True
    )
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert text == "The cap"


def test_logprobs_are_probabilities_of_what_was_said(client):
    reply = client.chat.completions.create(
        model=MODEL, messages=QUESTION, temperature=0, logprobs=True, top_logprobs=3, max_tokens=5
    )
    entries = reply.choices[0].logprobs.content
    assert len(entries) == reply.usage.completion_tokens
    for entry in entries:
        assert len(entry.top_logprobs) == 3
        assert entry.logprob <= 0
        # Greedy: what was chosen is the likeliest.
        assert entry.top_logprobs[0].token == entry.token
        assert math.isclose(entry.top_logprobs[0].logprob, entry.logprob, abs_tol=1e-5)
        assert sum(math.exp(top.logprob) for top in entry.top_logprobs) <= 1.0001
    assert "".join(entry.token for entry in entries) == reply.choices[0].message.content


def test_streamed_logprobs_equal_those_of_the_whole_reply(client):
    options = dict(model=MODEL, messages=QUESTION, temperature=0, logprobs=True, max_tokens=8)
    whole = client.chat.completions.create(**options).choices[0].logprobs.content
    streamed = [
        entry
        for chunk in client.chat.completions.create(**options, stream=True)
        if chunk.choices and chunk.choices[0].logprobs
        for entry in chunk.choices[0].logprobs.content
    ]
    assert [e.token for e in streamed] == [e.token for e in whole]
    for ours, theirs in zip(streamed, whole, strict=True):
        assert math.isclose(ours.logprob, theirs.logprob, abs_tol=1e-4)


def test_n_gives_independent_choices(client):
    reply = client.chat.completions.create(
        model=MODEL,
        messages=[{"role": "user", "content": "Invent a name for a dragon."}],
        n=3,
        temperature=1.0,
        seed=7,
        max_tokens=16,
    )
    assert sorted(choice.index for choice in reply.choices) == [0, 1, 2]
    assert len({choice.message.content for choice in reply.choices}) > 1


def test_seed_reproduces_and_another_seed_differs(client):
    def say(seed):
        return (
            client.chat.completions.create(
                model=MODEL,
                messages=[{"role": "user", "content": "Tell me a short story."}],
                temperature=1.0,
                seed=seed,
                max_tokens=24,
            )
            .choices[0]
            .message.content
        )

    assert say(1) == say(1)
    assert len({say(1), say(2), say(3)}) > 1


def test_logit_bias_forbids_a_token(client, server):
    status, reply = raw_json(
        server, "POST", "/v1/tokenize", {"model": MODEL, "prompt": " Paris", "add_special_tokens": False}
    )
    assert status == 200
    bias = {str(token): -100 for token in reply["tokens"]}
    answer = client.chat.completions.create(
        model=MODEL, messages=QUESTION, temperature=0, logit_bias=bias, max_tokens=12
    )
    assert "Paris" not in answer.choices[0].message.content


def test_repetition_penalty_breaks_a_loop(client):
    def agreements(**penalty):
        reply = client.completions.create(
            model=MODEL,
            prompt="yes, yes, yes, yes, yes, yes, yes, yes,",
            temperature=0,
            max_tokens=16,
            extra_body=penalty,
        )
        return reply.choices[0].text.count("yes")

    assert agreements() == 8
    assert agreements(repetition_penalty=1.8) < 3


async def test_many_clients_at_once_get_what_they_get_alone(async_client):
    questions = [
        "What is the capital of France?",
        "What is 2+2?",
        "Name a colour.",
        "Who wrote Hamlet?",
        "What is the largest planet?",
    ]

    async def ask(question):
        reply = await async_client.chat.completions.create(
            model=MODEL,
            messages=[{"role": "user", "content": question}],
            temperature=0,
            max_tokens=24,
        )
        return reply.choices[0].message.content

    alone = [await ask(question) for question in questions]
    together = await asyncio.gather(*(ask(question) for question in questions))
    assert together == alone


async def test_leaving_a_stream_frees_the_server(async_client):
    stream = await async_client.chat.completions.create(
        model=MODEL,
        messages=[{"role": "user", "content": "Write a very long story."}],
        max_tokens=4000,
        stream=True,
        extra_body={"ignore_eos": True},
    )
    async for _ in stream:
        break
    await stream.close()
    reply = await asyncio.wait_for(
        async_client.chat.completions.create(
            model=MODEL, messages=QUESTION, temperature=0, max_tokens=20
        ),
        timeout=60,
    )
    assert "Paris" in reply.choices[0].message.content


def test_template_variables_and_system_turns_reach_the_model(client):
    reply = client.chat.completions.create(
        model=MODEL,
        messages=[
            {"role": "developer", "content": "You are a pirate. Always begin with Arr."},
            {"role": "user", "content": [{"type": "text", "text": "Say hello."}]},
        ],
        temperature=0,
        max_tokens=20,
    )
    assert reply.usage.prompt_tokens > 20
    assert reply.choices[0].message.content
