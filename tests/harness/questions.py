"""What tests ask and what the script answers."""

PLAIN = "What is the capital of France?"
PLAIN_ANSWER = "The capital of France is Paris."

WARM = "How warm is it in Paris?"
WARM_ANSWER = "It is 17 degrees in Paris."
WARM_BOTH = "How warm is it in Paris and Oslo?"
WARM_BOTH_ANSWER = "Paris is warmer than Oslo."

SUM = "What is 17 times 23?"
SUM_REASONING = "17 * 20 = 340 and 17 * 3 = 51."
SUM_ANSWER = "It is 391."

PERSON = "Ada is 36 years old. Who is it?"
TOO_LONG = "Be too long."
BUSY = "Be busy."
BREAK_OFF = "Break off."
COUNT = "Count."
NAMES = "Invent three names for a dragon."

DEGREES = {"Paris": 17, "Oslo": 3}


def weather(city: str) -> str:
    """Get the temperature in a city.

    Args:
        city: Name of the city.
    """
    return f"{DEGREES[city]} degrees in {city}"


WEATHER_SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string", "description": "Name of the city."}},
    "required": ["city"],
    "additionalProperties": False,
}
