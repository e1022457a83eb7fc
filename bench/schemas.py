"""Thirty schemas of the kinds that people send, for the cost of holding an output to one."""

TEXT = {"type": "string"}
NAME = {"type": "string", "minLength": 1, "maxLength": 24}
COLOURS = ["red", "green", "blue", "black", "white", "grey", "yellow", "violet"]
COUNTRIES = [f"{first}{second}" for first in "ABCDEFGHIJ" for second in "KLMNOPQRST"]


def record(properties: dict, optional: tuple = (), **more) -> dict:
    required = [name for name in properties if name not in optional]
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
        **more,
    }


def union(*branches: dict) -> dict:
    return {"anyOf": list(branches)}


SCHEMAS: dict[str, dict] = {
    "person": record({"name": NAME, "age": {"type": "integer", "minimum": 0, "maximum": 130}}),
    "any object": {"type": "object"},
    "text": TEXT,
    "short text": {"type": "string", "maxLength": 12},
    "number": {"type": "number"},
    "bounded number": {"type": "number", "minimum": -1.5, "maximum": 99.25},
    "multiple": {"type": "integer", "multipleOf": 5, "minimum": 0, "maximum": 1000},
    "boolean": {"type": "boolean"},
    "enum": {"enum": COLOURS},
    "large enum": {"enum": COUNTRIES},
    "mixed enum": {"enum": ["a", 1, None, True, {"b": []}]},
    "optional fields": record({"a": TEXT, "b": TEXT, "c": TEXT, "d": TEXT}, optional=("a", "b", "c", "d")),
    "many fields": record({f"field_{index}": {"type": "integer"} for index in range(40)}),
    "long names": record({f"a_rather_long_name_of_field_{index}": {"type": "boolean"} for index in range(8)}),
    "nested": record({"a": record({"b": record({"c": record({"d": NAME})})})}),
    "list": {"type": "array", "items": {"type": "integer"}, "maxItems": 8},
    "list of lists": {"type": "array", "items": {"type": "array", "items": {"type": "number"}, "maxItems": 4}},
    "tuple": {"type": "array", "prefixItems": [NAME, {"type": "integer"}], "items": False, "minItems": 2},
    "map": {"type": "object", "additionalProperties": {"type": "integer"}},
    "pattern": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{4}$"},
    "email": {"type": "string", "format": "email"},
    "date and time": {"type": "string", "format": "date-time"},
    "uuid": {"type": "string", "format": "uuid"},
    "nullable": record({"a": union(TEXT, {"type": "null"}), "b": {"type": ["integer", "null"]}}),
    "union": union(record({"kind": {"const": "cat"}, "lives": {"type": "integer"}}), record({"kind": {"const": "dog"}, "good": {"type": "boolean"}})),
    "tree": {
        "$ref": "#/$defs/node",
        "$defs": {
            "node": record({"value": {"type": "integer"}, "children": {"type": "array", "items": {"$ref": "#/$defs/node"}, "maxItems": 3}})
        },
    },
    "merged": {"allOf": [{"type": "object", "properties": {"a": NAME}, "required": ["a"]}, {"properties": {"b": {"type": "integer"}}, "required": ["b"]}]},
    "weather call": record({"city": NAME, "unit": {"enum": ["celsius", "fahrenheit"]}, "days": {"type": "integer", "minimum": 1, "maximum": 14}}),
    "edit call": record({"path": TEXT, "edits": {"type": "array", "items": record({"old": TEXT, "new": TEXT}), "minItems": 1, "maxItems": 3}}),
    "review": record({"summary": {"type": "string", "maxLength": 80}, "score": {"type": "integer", "minimum": 1, "maximum": 5}, "tags": {"type": "array", "items": {"enum": COLOURS}, "maxItems": 3}}),
}
assert len(SCHEMAS) == 30


def long(schema: dict) -> dict:
    """Many of them, so that an output is long enough to be measured."""
    definitions = {key: schema[key] for key in ("$defs",) if key in schema}
    item = {key: value for key, value in schema.items() if key != "$defs"}
    return {"type": "array", "items": item, "minItems": 40, **definitions}
