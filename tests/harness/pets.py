"""What tests of constrained answers ask for: small enough that a small model comes to an end."""

import datetime
import enum
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

QUESTION = "Invent a pet and describe it in JSON."

Word = Annotated[str, Field(min_length=1, max_length=6)]


class Mood(enum.StrEnum):
    HAPPY = "happy"
    SLEEPY = "sleepy"


class Closed(BaseModel):
    """Has no other members, which a small model would not stop to invent."""

    model_config = ConfigDict(extra="forbid")


class Owner(Closed):
    """Who feeds it."""

    name: Word
    age: Annotated[int, Field(ge=1, le=99)]


class Pet(Closed):
    """Nested, enumerated, listed, optional, of several types and dated."""

    name: Word
    kind: Literal["cat", "dog", "bird"]
    mood: Mood
    owner: Owner
    toys: Annotated[list[Word], Field(max_length=2)]
    nickname: Word | None
    born: datetime.date
    size: Annotated[int, Field(ge=0, le=9)] | Literal["small", "big"]
    is_loud: bool


class Trait(Closed):
    """Bounded without lengths and ranges, which some SDKs turn into words."""

    mood: Mood
    is_loud: bool
    likes: Literal["cheese", "fish", "seed"] | None
    born: datetime.date


class Traits(Closed):
    first: Trait
    second: Trait


class Anything(BaseModel):
    """Any object."""

    model_config = ConfigDict(extra="allow")


# Temperatures and seeds; drawing is real at each.
DRAWS = [(0.0, 1), (0.7, 2), (1.2, 3)]
SOME_DRAWS = DRAWS[1:]
