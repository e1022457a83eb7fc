"""What tests of constrained answers ask for: small enough that a small model comes to an end."""

import datetime
import enum
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

QUESTION = "Invent a pet and describe it in JSON."

Word = Annotated[str, Field(min_length=1, max_length=10)]


class Mood(enum.StrEnum):
    HAPPY = "happy"
    SLEEPY = "sleepy"


class Owner(BaseModel):
    """Who feeds it."""

    name: Word
    age: Annotated[int, Field(ge=1, le=99)]


class Pet(BaseModel):
    """Nested, enumerated, listed, optional, of several types and dated."""

    name: Word
    kind: Literal["cat", "dog", "bird"]
    mood: Mood
    owner: Owner
    toys: Annotated[list[Word], Field(max_length=3)]
    nickname: Word | None
    born: datetime.date
    size: Annotated[int, Field(ge=0, le=9)] | Literal["small", "big"]
    is_loud: bool


class Trait(BaseModel):
    """Bounded without lengths and ranges, which some SDKs turn into words."""

    mood: Mood
    is_loud: bool
    likes: Literal["cheese", "fish", "seed"] | None
    born: datetime.date


class Traits(BaseModel):
    first: Trait
    second: Trait


class Anything(BaseModel):
    """Any object."""

    model_config = ConfigDict(extra="allow")


# Drawing is real at every one of these.
DRAWS = [(0.0, 1), (0.7, 2), (1.2, 3)]
