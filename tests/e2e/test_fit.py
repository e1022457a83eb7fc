"""Whether a model is said to fit, against the memory it takes."""

import os
from urllib.parse import quote

from conftest import MODEL, Server, macmlx, raw_json

#: An estimate this far off would still tell who should not load a model.
TOLERANCE = 0.35


def test_the_estimate_is_what_the_process_takes(tmp_path):
    # A process of its own: nothing but this model is in it.
    imported = macmlx(tmp_path, "import", os.environ["MACMLX_STARTER_GGUF"], "--name", MODEL)
    assert imported.returncode == 0, imported.stderr
    server = Server(tmp_path)
    try:
        token = (server.home / "data/control-token").read_text().strip()
        headers = {"authorization": f"Bearer {token}"}

        def control(method, path, body=None):
            status, reply = raw_json(server, method, path, body, headers)
            assert status == 200, reply
            return reply

        control("POST", "/x/models/load", {"model": MODEL})
        fit = control("GET", f"/x/models/{quote(MODEL, safe='')}/fit?context_tokens=256")
        assert fit["verdict"] == "fits"
        taken = control("GET", "/x/status")["memory_used_bytes"]
        assert abs(taken - fit["needed_bytes"]) < TOLERANCE * taken, (taken, fit)
    finally:
        assert server.stop() == 0
