"""The window, and the in-process door behind it."""

import os
from pathlib import Path

from conftest import MODEL
from desktop_app import answers
from waiting import until

ENTER = "\ue007"

QUESTION = {
    "model": MODEL,
    "messages": [{"role": "user", "content": "Count from one to ten."}],
    "stream": True,
    "temperature": 0,
}


def test_the_window_shows_the_page(app):
    assert app.browser.url.startswith("tauri://localhost")
    # The names of the screens, whichever is shown.
    until(lambda: "Models" in app.browser.text and "Chat" in app.browser.text, "the page")
    assert app.session.windows("macMLX")
    screenshot(app, "window")


def test_the_page_has_no_way_but_the_door(app):
    refused = """
        const tried = await window.__TAURI_INTERNALS__
            .invoke('plugin:window|close', {}).catch((error) => `refused: ${error}`);
        return String(tried);
    """
    assert "not allowed" in app.browser.run_async(refused)
    blocked = """
        const blocked = [];
        document.addEventListener('securitypolicyviolation',
            (event) => blocked.push(event.effectiveDirective));
        await fetch('http://127.0.0.1:1/').catch(() => {});
        const script = document.createElement('script');
        script.textContent = 'window.injected = true;';
        document.head.append(script);
        await new Promise((resolve) => setTimeout(resolve, 100));
        return [blocked.map((directive) => directive.split('-')[0]), window.injected ?? false];
    """
    assert app.browser.run_async(blocked) == [["connect", "script"], False]


def test_a_model_is_chatted_with_while_no_port_is_open(app, port):
    assert app.status()["door"]["state"] == "closed"
    assert not answers(port)
    messages = app.ask("POST", "/v1/chat/completions", QUESTION | {"max_tokens": 24})
    assert not answers(port)
    head, *pieces, end = messages
    assert (head["type"], head["status"], end["type"]) == ("head", 200, "end")
    assert ["content-type", "text/event-stream"] in head["headers"]
    text = "".join(piece["text"] for piece in pieces)
    assert text.count("data: ") > 10 and text.rstrip().endswith("data: [DONE]")
    # Frames come as they are made, not all at the end.
    assert len(pieces) > 10
    assert pieces[-1]["at"] - pieces[0]["at"] > 20
    assert app.status()["loaded_model"] == MODEL


def test_a_person_chats_in_the_window(app, port):
    browser = app.browser
    model = MODEL.replace("/", "%2F")
    app.json("PATCH", f"/x/models/{model}/parameters", {"temperature": 0, "maxTokens": 32})
    composer = until(lambda: browser.find_if_there("textarea[aria-label=Message]"), "the composer")
    browser.type(composer, f"What is the capital of France?{ENTER}")
    answered = "article[aria-busy=false]"
    answer = until(lambda: browser.find_if_there(answered), "an answer that has ended", 120)
    assert "Paris" in browser.text_of(answer)
    assert not answers(port)
    screenshot(app, "chat")


def test_cancelling_stops_the_generation(app):
    app.begin("POST", "/v1/chat/completions", QUESTION | {"max_tokens": 4000})
    assert app.status()["requests_running"] == 1
    app.cancel()
    until(lambda: app.status()["requests_running"] == 0, "the generation to stop", 5)


def test_a_page_that_is_gone_leaves_nothing_running(app):
    app.begin("POST", "/v1/chat/completions", QUESTION | {"max_tokens": 4000})
    app.browser.refresh()
    until(lambda: app.status()["requests_running"] == 0, "the generation to stop", 5)


def test_errors_come_through_as_answers(app):
    head, *pieces, end = app.ask("GET", "/x/nothing/here")
    assert (head["status"], end["type"]) == (404, "end")
    assert "error" in "".join(piece["text"] for piece in pieces)
    (failed,) = app.ask("NOT A METHOD", "/x/status")
    assert failed["type"] == "failed" and failed["message"]


def screenshot(app, name: str) -> None:
    """Keeps a picture where the environment says, for people to look at."""
    if folder := os.environ.get("MACMLX_SCREENSHOTS"):
        app.session.screenshot(Path(folder) / f"desktop-{name}.png")
