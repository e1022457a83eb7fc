"""What stands around the engine: the CPU of the dialects and HTTP, and how fast frames go out.

The share of CPU is measured with the real engine; the rates with written answers that are played
without one, so that nothing but the protocol layer limits them.
"""

import http.client
import json
import statistics
import threading
import time
from pathlib import Path

import servers

IDLE_STREAMS = 256
SCRIPT = {
    "turns": [
        # A stream that says one token and then nothing for the time of the measurement.
        {"when": {"last_message_contains": "IDLE"}, "say": "wait " * 400, "tokens_per_second": 0.01},
        {"say": "one two three four five six seven eight nine ten " * 400},
    ]
}
DIALECTS = {
    "chat completions": ("/v1/chat/completions", {}),
    "responses": ("/v1/responses", {"input": "go", "messages": None}),
    "messages": ("/v1/messages", {"max_tokens": 100_000}),
    "ollama chat": ("/api/chat", {}),
}


def cpu_seconds(process_id: int) -> dict[tuple[str, str], float]:
    """CPU time of each thread, by its id and name."""
    return {
        (task.name, (task / "comm").read_text().strip()): int((task / "schedstat").read_text().split()[0]) * 1e-9
        for task in Path(f"/proc/{process_id}/task").iterdir()
    }


def protocol_share(server: servers.Server, prompts: list[str], max_tokens: int) -> float:
    """Of the CPU spent while clients decode together, what the async runtime's threads took."""
    before = cpu_seconds(server.process.pid)
    server.complete_together(prompts, max_tokens)
    after = cpu_seconds(server.process.pid)
    spent = {thread: seconds - before.get(thread, 0.0) for thread, seconds in after.items()}
    runtime = sum(seconds for (_, name), seconds in spent.items() if name.startswith("tokio"))
    return runtime / sum(spent.values())


def request(port: int, dialect: str, model: str, text: str) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
    path, extra = DIALECTS[dialect]
    body = {"model": model, "stream": True, "messages": [{"role": "user", "content": text}]} | extra
    body = {key: value for key, value in body.items() if value is not None}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    connection.request("POST", path, json.dumps(body), {"content-type": "application/json"})
    reply = connection.getresponse()
    if reply.status != 200:
        raise RuntimeError(f"{path}: {reply.status} {reply.read()!r}")
    return connection, reply


def stream_rate(port: int, dialect: str, model: str) -> float:
    """Lines with content a second through one connection, each the text of one token."""
    connection, reply = request(port, dialect, model, "go")
    first = last = None
    lines = 0
    for line in reply:
        if line.startswith((b"data: {", b"{")):
            last = time.perf_counter()
            first = first or last
            lines += 1
    connection.close()
    return (lines - 1) / (last - first)


def open_idle(port: int, model: str) -> list[http.client.HTTPConnection]:
    """Streams that have begun and say no more."""
    connections: list[http.client.HTTPConnection] = []

    def one() -> None:
        connection, reply = request(port, "chat completions", model, "IDLE")
        reply.readline()
        connections.append(connection)

    threads = [threading.Thread(target=one) for _ in range(IDLE_STREAMS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if len(connections) != IDLE_STREAMS:
        raise RuntimeError(f"only {len(connections)} of {IDLE_STREAMS} streams began")
    return connections


def measure_share(start, prompts, runs: int, clients: int, tokens: int) -> dict:
    """The protocol layer's share of the CPU while the real engine decodes for several clients."""
    server = start()
    try:
        stories = [[prompts.story() for _ in range(clients)] for _ in range(runs)]
        return {"protocol_share": [{"share": protocol_share(server, texts, tokens)} for texts in stories]}
    finally:
        server.stop()


def measure_streams(binary: Path, model: Path, home: Path, runs: int) -> dict:
    """Rates of each dialect alone, and of one beside many idle streams."""
    script = home / "script.json"
    script.write_text(json.dumps(SCRIPT))
    server = servers.start_ours(binary, model, home, "--playback", str(script))
    try:
        figures = {
            f"stream_{dialect}": [
                {"tokens_per_second": stream_rate(server.port, dialect, server.model)} for _ in range(runs)
            ]
            for dialect in DIALECTS
        }
        idle = open_idle(server.port, server.model)
        figures["stream_beside_idle"] = [
            {"tokens_per_second": stream_rate(server.port, "chat completions", server.model)}
            for _ in range(runs)
        ]
        for connection in idle:
            connection.close()
        return figures
    finally:
        server.stop()


def report(figures: dict) -> list[str]:
    """Lines for people."""

    def median(key: str, field: str) -> float:
        return statistics.median(each[field] for each in figures[key])

    lines = [f"protocol layer, share of the CPU of a decode of 4: {median('protocol_share', 'share'):.2%}"]
    for dialect in DIALECTS:
        rate = median(f"stream_{dialect}", "tokens_per_second")
        lines.append(f"{dialect}: {rate:,.0f} played tokens a second through one connection")
    beside = median("stream_beside_idle", "tokens_per_second")
    alone = median("stream_chat completions", "tokens_per_second")
    lines.append(f"chat completions beside {IDLE_STREAMS} idle streams: {beside:,.0f} ({beside / alone:.2f} of alone)")
    return lines
