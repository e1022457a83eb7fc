"""`instructor`'s ways to ask for objects, of a model that draws them."""

import instructor
import openai
import pytest
from harness.pets import DRAWS, QUESTION, Anything, Owner, Pet
from harness.starter import MODEL
from instructor.core import IncompleteOutputException, InstructorRetryException

MODES = [instructor.Mode.TOOLS, instructor.Mode.JSON_SCHEMA]
ASK = {
    "model": MODEL,
    "messages": [{"role": "user", "content": QUESTION}],
    "max_tokens": 400,
    "max_retries": 0,
}


def make(server, mode):
    client = openai.OpenAI(base_url=f"{server.url}/v1", api_key="unused", max_retries=0)
    return instructor.from_openai(client, mode=mode)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("temperature", "seed"), DRAWS)
def test_object(starter, mode, temperature, seed):
    pet = make(starter, mode).chat.completions.create(
        **ASK, response_model=Pet, temperature=temperature, seed=seed
    )
    assert isinstance(pet, Pet)


@pytest.mark.parametrize("mode", MODES)
def test_partial_objects_of_a_stream(starter, mode):
    # Parts are checked as Python objects, in which no text is a date: so one without dates.
    parts = list(
        make(starter, mode).chat.completions.create_partial(
            **ASK, response_model=Owner, temperature=1, seed=4
        )
    )
    assert len(parts) > 1
    Owner.model_validate(parts[-1].model_dump())


def test_any_object(starter):
    """The schema is only told to the model, which is too small to follow it."""
    client = make(starter, instructor.Mode.JSON)
    for seed in range(16):
        try:
            thing = client.chat.completions.create(
                **ASK | {"max_tokens": 100}, response_model=Anything, temperature=1, seed=seed
            )
        except (IncompleteOutputException, InstructorRetryException) as error:
            # An object may be longer than there is room for.
            assert "max_tokens" in str(error) or "incomplete" in str(error), error
            continue
        assert isinstance(thing, Anything)
        return
    raise AssertionError("no object came to an end")
