"""Conversations that clients send. Texts carry numbered words (`k1-…`) that no prompt may lose."""

TOOLS = [
    {"name": "get_weather",
     "description": "Weather of a \"city\" <now>.",
     "parameters": {"type": "object", "properties": {
         "city": {"type": "string", "description": "Größe ≥ 1"},
         "days": {"type": "integer", "minimum": 1, "default": 1.5},
         "unit": {"type": "string", "enum": ["C", "F"]}},
         "required": ["city"]}},
    {"name": "k2-stop",
     "description": "Ends the session; it's final.",
     "parameters": {"type": "object", "properties": {}}},
]


def system(text):
    return {"role": "system", "text": text}


def user(text):
    return {"role": "user", "text": text}


def assistant(text="", *calls, reasoning=None):
    message = {"role": "assistant", "text": text}
    if reasoning:
        message["reasoning"] = reasoning
    if calls:
        message["calls"] = list(calls)
    return message


def weather(ident, city):
    return {"id": ident, "name": "get_weather", "arguments": {"city": city, "days": 2}}


def result(ident, text, name="get_weather"):
    return {"role": "tool", "text": text, "id": ident, "name": name}


CALL = weather("call_a1", "k2-bonn")
AGENT = [
    system("k1-be a helper"),
    user("k2-look at it"),
    assistant("", weather("call_a1", "k3-bonn"), reasoning="I look."),
    result("call_a1", "k4-sunny"),
    assistant("", weather("call_b2", "k5-köln"), reasoning="And there."),
    result("call_b2", "k6-rain"),
    assistant("k7-done", reasoning="That is all."),
    user("k8-thanks"),
    assistant("k9-welcome"),
    user("k10-bye"),
]
CHAT = [
    system("k1-be short"),
    user("k2-hi"),
    assistant("k3-hello", reasoning="A greeting."),
    user("k4-and?"),
    assistant("k5-well", reasoning="They want more."),
    user("k6-ok"),
]

# Name, messages, and what else is asked for.
ORDINARY = [
    ("plain", [user("k1-hello")], {}),
    ("system", [system("k1-be short"), user("k2-hello")], {}),
    ("markup", [user("k1-<b> & \"quotes\" it's\n\n  k2-two {{ braces }} {% raw %} \\ é 🙂 ")], {}),
    ("turns", [user("k1-hi"), assistant("k2-hello"), user("k3-bye")], {}),
    ("system turns", CHAT, {}),
    ("tools", [system("k1-be short"), user("k2-weather?")], {"tools": True}),
    ("tools without system", [user("k1-weather?")], {"tools": True}),
    ("call", [user("k1-weather?"), assistant("", CALL), result("call_a1", "k3-sunny")],
     {"tools": True}),
    ("call and answer", [
        user("k1-weather?"), assistant("", CALL), result("call_a1", "k3-sunny"),
        assistant("k4-it is sunny"), user("k5-thanks")], {"tools": True}),
    ("call in nine letters", [
        user("k1-weather?"), assistant("", weather("abcdef123", "k2-bonn")),
        result("abcdef123", "k3-sunny"), assistant("k4-sunny"), user("k5-ok")], {"tools": True}),
    ("agent", AGENT, {"tools": True}),
    ("thinking on", CHAT, {"enabled": True}),
    ("thinking off", CHAT, {"enabled": False}),
    ("effort low", [user("k1-hello")], {"effort": "low"}),
    ("effort max", [user("k1-hello")], {"effort": "max", "enabled": True}),
    ("continue", [user("k1-hello"), assistant("k2-once upon")], {"continue": True}),
    ("continue after space", [user("k1-hello"), assistant("k2-once upon ")], {"continue": True}),
    ("variables", [user("k1-hello")],
     {"kwargs": {"preserve_thinking": True, "builtin_tools": ["browser"], "custom": [1, 2.5]}}),
]

# What templates were not made for.
ODD = [
    ("systems", [system("k1-one"), system("k2-two"), user("k3-hi")], {}),
    ("systems and tools", [system("k1-one"), system("k2-two"), user("k3-hi")], {"tools": True}),
    ("system only", [system("k1-hello")], {}),
    ("system after user", [
        system("k1-base"), user("k2-hi"), system("k3-skills"), assistant("k4-yes"), user("k5-go")],
     {"tools": True}),
    ("system between", [user("k1-hi"), assistant("k2-yes"), system("k3-news"), user("k4-go")], {}),
    ("system at the end", [system("k1-base"), user("k2-hi"), assistant("k3-yes"),
                           system("k4-now")], {}),
    ("system after result", [
        user("k1-hi"), assistant("", weather("call_a1", "k2-bonn")), result("call_a1", "k3-sunny"),
        system("k4-note")], {"tools": True}),
    ("users", [user("k1-one"), user("k2-two"), assistant("k3-yes"), user("k4-three"),
               user("k5-four")], {}),
    ("assistants", [user("k1-hi"), assistant("k2-one"), assistant("k3-two"), user("k4-go")], {}),
    ("assistant first", [assistant("k1-welcome"), user("k2-hi")], {}),
    ("assistant after system", [system("k1-base"), assistant("k2-welcome"), user("k3-hi")], {}),
    ("call first", [assistant("", weather("call_a1", "k1-bonn")), result("call_a1", "k2-sunny"),
                    user("k3-go")], {"tools": True}),
    ("user after result", [
        user("k1-hi"), assistant("", weather("call_a1", "k2-bonn")), result("call_a1", "k3-sunny"),
        user("k4-hurry"), assistant("k5-yes"), user("k6-go")], {"tools": True}),
    ("text beside call", [
        user("k1-hi"), assistant("k2-let me see", weather("call_a1", "k3-bonn")),
        result("call_a1", "k4-sunny"), assistant("k5-sunny"), user("k6-go")], {"tools": True}),
    ("text and reasoning beside call", [
        user("k1-hi"),
        assistant("k2-let me see", weather("call_a1", "k3-bonn"), reasoning="I look."),
        result("call_a1", "k4-sunny")], {"tools": True}),
    ("parallel calls", [
        user("k1-hi"),
        assistant("", weather("call_a1", "k2-bonn"), weather("call_b2", "k3-köln")),
        result("call_a1", "k4-sunny"), result("call_b2", "k5-rain"),
        assistant("k6-mixed"), user("k7-go")], {"tools": True, "any order": True}),
    ("result without name", [
        user("k1-hi"), assistant("", weather("call_a1", "k2-bonn")),
        result("call_a1", "k3-sunny", name=None)], {"tools": True}),
    ("broken arguments", [
        user("k1-hi"),
        assistant("", {"id": "call_a1", "name": "get_weather", "arguments": "{\"city\": \"k2-bo"}),
        result("call_a1", "k3-no json")], {"tools": True}),
    ("no arguments", [
        user("k1-hi"), assistant("", {"id": "call_a1", "name": "k2-stop", "arguments": ""}),
        result("call_a1", "k3-stopped", name="k2-stop")], {"tools": True}),
    ("calls without tools", [
        user("k1-hi"), assistant("k2-see", weather("call_a1", "k3-bonn")),
        result("call_a1", "k4-sunny"), assistant("k5-sunny"), user("k6-go")], {}),
]

ALL = [*ORDINARY, *ODD]

# Each is asked again and again as it grows.
GROWING = [
    ("chat", CHAT, {}),
    ("agent", AGENT, {"tools": True}),
    ("claude code", [
        system("k1-base"), user("k2-hi"), system("k3-skills"),
        assistant("k4-see", weather("call_a1", "k5-bonn"), weather("call_b2", "k6-köln")),
        result("call_a1", "k7-sunny"), result("call_b2", "k8-rain"), user("k9-hurry"),
        assistant("k10-done"), user("k11-go"), system("k12-note"), assistant("k13-ok"),
        user("k14-bye")], {"tools": True}),
]


def steps(messages):
    """The conversation at each time an answer is asked for."""
    for end in range(1, len(messages) + 1):
        asked = messages[end - 1]["role"] in ("user", "tool")
        if asked and (end == len(messages) or messages[end]["role"] == "assistant"):
            yield messages[:end]
        elif messages[end - 1]["role"] == "system" and end > 1 and end < len(messages) \
                and messages[end]["role"] == "assistant":
            yield messages[:end]
