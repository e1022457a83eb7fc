"""Requests as bytes, past every client library."""

import json
import urllib.error
import urllib.request


def raw(server, method: str, path: str, body: bytes = b"", headers=None):
    """One request as bytes; returns status, headers and body, also for errors."""
    request = urllib.request.Request(
        server.url + path,
        data=body if method == "POST" else None,
        method=method,
        headers={"content-type": "application/json"} | (headers or {}),
    )
    try:
        with urllib.request.urlopen(request, timeout=300) as reply:
            return reply.status, reply.headers, reply.read()
    except urllib.error.HTTPError as reply:
        return reply.code, reply.headers, reply.read()


def raw_json(server, method: str, path: str, body: object = None, headers=None):
    status, _, text = raw(server, method, path, json.dumps(body).encode(), headers)
    return status, json.loads(text)
