"""Requests as real clients sent them, replayed as they stand."""

import json
from pathlib import Path

import pytest
from harness import encoders
from harness.http import raw
from harness.playback import MODEL, make_home
from harness.program import Server

FIXTURES = Path(__file__).parents[3] / "tests/fixtures/protocol"

# Each dialect with what the last frame of its streams has.
ENDS = {
    "anthropic": '"type":"message_stop"',
    "openai": "[DONE]",
    "responses": '"type":"response.completed"',
    "ollama": '"done":true',
}

# The model of Ollama's clients.
TAGGED = "qwen3:8b"

# What is refused by design, and the field that the error names: no model here sees images.
REFUSED = {"responses/client_codex_image": "input[3].content[1]"}

# Where texts become vectors, and where those are in the answer.
EMBEDDING = {
    "/v1/embeddings": lambda reply: [data["embedding"] for data in reply["data"]],
    "/api/embed": lambda reply: reply["embeddings"],
    "/api/embeddings": lambda reply: [reply["embedding"]],
}

# Some clients demand a call; all others are told that it is done.
SCRIPT = {
    "turns": [
        {
            "when": {"tool_offered": "Dog"},
            "say": '<tool_call>\n{"name": "Dog", "arguments": {"name": "Done"}}\n</tool_call>',
        },
        {
            "when": {"tool_offered": "final_result"},
            "say": '<tool_call>\n{"name": "final_result", "arguments": {"a": "Done"}}\n</tool_call>',
        },
        {"say": "Done."},
    ]
}


def request(case):
    return json.loads((FIXTURES / case / "request.json").read_text())


def cases(*, embedding=False):
    for dialect in ENDS:
        for path in sorted((FIXTURES / dialect).glob("client_*")):
            case = f"{dialect}/{path.name}"
            if (request(case)["path"] in EMBEDDING) == embedding:
                yield case


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recorded")
    script = folder / "script.json"
    script.write_text(json.dumps(SCRIPT))
    home = make_home(folder)
    # Names with a tag mean one model and no other; the rest go to the only one there is.
    settings = {"modelAliases": {TAGGED: MODEL}}
    (home / "data/settings.json").write_text(json.dumps(settings))
    server = Server(home, "--playback", str(script))
    yield server
    assert server.stop() == 0


def test_there_are_requests_of_each_dialect():
    dialects = {case.split("/")[0] for case in cases()}
    assert dialects == set(ENDS)


@pytest.mark.parametrize("case", list(cases()))
def test_recorded_request(server, case):
    recorded = request(case)
    body = json.dumps(recorded["body"]).encode()
    status, headers, reply = raw(server, "POST", recorded["path"], body)
    text = reply.decode()
    if case in REFUSED:
        assert status == 400, text
        assert REFUSED[case] in text
        return
    assert status == 200, text
    assert "Done" in text
    if not headers["content-type"].startswith("application/json"):
        assert ENDS[case.split("/")[0]] in text.strip().split("\n")[-1]


@pytest.fixture(scope="module")
def embedder(tmp_path_factory):
    """The only embedding model here, which answers to every name."""
    folder = tmp_path_factory.mktemp("embedder")
    server = Server(encoders.make_home(folder, [encoders.EMBEDDER]))
    yield server
    assert server.stop() == 0


@pytest.mark.parametrize("case", list(cases(embedding=True)))
def test_recorded_request_for_vectors(embedder, case):
    recorded = request(case)
    body = json.dumps(recorded["body"]).encode()
    status, _, reply = raw(embedder, "POST", recorded["path"], body)
    assert status == 200, reply
    vectors = EMBEDDING[recorded["path"]](json.loads(reply))
    wanted = recorded["body"].get("input", "one")
    assert len(vectors) == (1 if isinstance(wanted, str) else len(wanted))
    assert all(vectors)
