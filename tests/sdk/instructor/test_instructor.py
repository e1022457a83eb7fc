"""`instructor`, which asks for objects; it needs an older `openai` than the other SDKs."""

import instructor
import openai
import pytest
from harness import questions as q
from harness.playback import MODEL
from instructor.core import InstructorRetryException
from pydantic import BaseModel


class Person(BaseModel):
    name: str
    age: int


ADA = {"name": "Ada", "age": 36}


def make(server, mode, key="unused"):
    client = openai.OpenAI(base_url=f"{server.url}/v1", api_key=key, max_retries=0)
    return instructor.from_openai(client, mode=mode)


def ask(client, text=q.PERSON, **options):
    return client.chat.completions.create(
        **{
            "model": MODEL,
            "response_model": Person,
            "messages": [{"role": "user", "content": text}],
            "max_retries": 0,
        }
        | options
    )


@pytest.mark.parametrize("mode", [instructor.Mode.TOOLS, instructor.Mode.MD_JSON])
def test_object(server, mode):
    assert ask(make(server, mode)).model_dump() == ADA


@pytest.mark.parametrize("mode", [instructor.Mode.TOOLS, instructor.Mode.MD_JSON])
def test_partial_objects_of_a_stream(server, mode):
    client = make(server, mode)
    partial = client.chat.completions.create_partial(
        model=MODEL,
        response_model=Person,
        messages=[{"role": "user", "content": q.PERSON}],
        max_retries=0,
    )
    assert list(partial)[-1].model_dump() == ADA


def test_unknown_model(server):
    with pytest.raises((InstructorRetryException, openai.NotFoundError), match="no/such"):
        ask(make(server, instructor.Mode.MD_JSON), model="no/such")


def test_context_length(server):
    with pytest.raises((InstructorRetryException, openai.BadRequestError), match="context"):
        ask(make(server, instructor.Mode.MD_JSON), text=q.TOO_LONG)


def test_wrong_key(guarded_server):
    with pytest.raises((InstructorRetryException, openai.AuthenticationError), match="401"):
        ask(make(guarded_server, instructor.Mode.MD_JSON, key="wrong"))
    client = make(guarded_server, instructor.Mode.MD_JSON, key="secret-key")
    assert ask(client).model_dump() == ADA
