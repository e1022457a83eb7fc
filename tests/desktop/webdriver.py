"""The few commands of the WebDriver protocol that these tests need."""

import json
import urllib.error
import urllib.request
from http.client import RemoteDisconnected


class WebDriverError(Exception):
    pass


class Browser:
    """One session, which is one run of the app."""

    def __init__(self, driver: str, application: str, arguments: list[str]):
        self._driver = driver
        options = {"application": application, "args": arguments}
        capabilities = {"alwaysMatch": {"tauri:options": options}}
        session = self._request("POST", "/session", {"capabilities": capabilities})
        self._session = f"/session/{session['sessionId']}"

    def run(self, script: str, *arguments: object) -> object:
        """Runs the body of a function in the page and returns what it returns."""
        return self._execute("sync", script, arguments)

    def run_async(self, script: str, *arguments: object) -> object:
        """Runs the body of an async function in the page and returns what comes of it."""
        script = f"""
            const done = arguments[arguments.length - 1];
            (async (...arguments_) => {{ {script} }})(...arguments)
                .then((value) => done({{ value }}), (error) => done({{ error: String(error) }}));
        """
        outcome = self._execute("async", script, arguments)
        if "error" in outcome:
            raise WebDriverError(outcome["error"])
        return outcome.get("value")

    def _execute(self, kind: str, script: str, arguments: tuple) -> object:
        body = {"script": script, "args": list(arguments)}
        return self._command("POST", f"/execute/{kind}", body)

    def set_timeout(self, seconds: float) -> None:
        """How long a script may take."""
        self._command("POST", "/timeouts", {"script": int(seconds * 1000)})

    def find_if_there(self, selector: str) -> str | None:
        """The first element that a CSS selector finds, if it is there by now."""
        body = {"using": "css selector", "value": selector}
        found = self._command("POST", "/elements", body)
        return next(iter(found[0].values())) if found else None

    def text_of(self, element: str) -> str:
        return self._command("GET", f"/element/{element}/text")

    def type(self, element: str, text: str) -> None:
        self._command("POST", f"/element/{element}/value", {"text": text})

    @property
    def url(self) -> str:
        return self._command("GET", "/url")

    @property
    def text(self) -> str:
        """What the page says."""
        return self.run("return document.body.innerText")

    def refresh(self) -> None:
        self._command("POST", "/refresh", {})

    def close(self) -> None:
        """Ends the session, and the app if it still runs."""
        self._command("DELETE", "")

    def _command(self, method: str, path: str, body: object = None) -> object:
        return self._request(method, self._session + path, body)

    def _request(self, method: str, path: str, body: object = None) -> object:
        request = urllib.request.Request(
            self._driver + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"content-type": "application/json"},
        )
        for is_last in (False, False, True):
            try:
                with urllib.request.urlopen(request, timeout=300) as reply:
                    return json.load(reply)["value"]
            except urllib.error.HTTPError as reply:
                raise WebDriverError(reply.read().decode()) from None
            except RemoteDisconnected:
                # The one driver meets a connection that the other closed while it was idle.
                if is_last:
                    raise
        raise AssertionError("unreachable")
