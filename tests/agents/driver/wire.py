"""Reads HTTP/1.1 messages out of the bytes of a connection."""

from dataclasses import dataclass, field
from urllib.parse import urlsplit

BODILESS = ("204", "304")


@dataclass
class Exchange:
    """A request and the reply to it; `status` is 0 and the reply empty where none came."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    status: int = 0
    reply: bytes = b""
    reply_headers: dict[str, str] = field(default_factory=dict)

    @property
    def path(self) -> str:
        return urlsplit(self.target).path


def exchanges(sent: bytes, received: bytes) -> list[Exchange]:
    """The requests in what a client sent on one connection, with the replies it received."""
    found = []
    while message := _take_message(sent):
        start, headers, body, sent = message
        method, target, _ = start.split(" ", 2)
        found.append(Exchange(method, target, headers, body))
    for exchange in found:
        start = "HTTP/1.1 100"
        while start.split(" ")[1].startswith("1"):
            message = _take_message(received, is_reply_to=exchange.method)
            if message is None:
                return found
            start, exchange.reply_headers, exchange.reply, received = message
        exchange.status = int(start.split(" ")[1])
    return found


def _take_message(data: bytes, is_reply_to: str = ""):
    """Start line, headers, body and the bytes after the message; nothing where it is cut off.

    A reply that was cut off is returned as far as it came: that is what the client saw.
    """
    head, found, rest = data.partition(b"\r\n\r\n")
    if not found:
        return None
    start, *lines = head.decode("latin-1").split("\r\n")
    headers = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    status = start.split(" ")[1]
    if is_reply_to and (is_reply_to == "HEAD" or status in BODILESS or status.startswith("1")):
        return start, headers, b"", rest
    if "chunked" in headers.get("transfer-encoding", ""):
        body, rest = _dechunk(rest)
        if rest is None:
            return (start, headers, body, b"") if is_reply_to else None
        return start, headers, body, rest
    if "content-length" in headers:
        length = int(headers["content-length"])
        if len(rest) < length and not is_reply_to:
            return None
        return start, headers, rest[:length], rest[length:]
    return (start, headers, rest, b"") if is_reply_to else (start, headers, b"", rest)


def _dechunk(data: bytes) -> tuple[bytes, bytes | None]:
    """The body of a chunked message and what follows it; None there where the end is missing."""
    body = b""
    while True:
        size, found, data = data.partition(b"\r\n")
        if not found:
            return body, None
        length = int(size.split(b";")[0], 16)
        if length == 0:
            _, found, rest = data.partition(b"\r\n")
            return body, rest if found else None
        body += data[:length]
        if len(data) < length + 2:
            return body, None
        data = data[length + 2 :]
