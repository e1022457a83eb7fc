"""The command line and the life of the server process."""

import json
import signal
import time

import openai
import pytest
from conftest import MODEL, Server, macmlx


def test_list_and_show_speak_json(home):
    listed = json.loads(macmlx(home, "list", "--json").stdout)
    assert [model["id"] for model in listed["models"]] == [MODEL]
    shown = json.loads(macmlx(home, "show", "smollm2", "--json").stdout)
    assert shown["id"] == MODEL
    assert shown["model_type"] == "llama"
    assert shown["context_length"] == 8192


def test_run_answers_once_and_only_on_stdout(home):
    said = macmlx(home, "run", MODEL, "What is the capital of France?", "--temperature", "0")
    assert said.returncode == 0, said.stderr
    assert "Paris" in said.stdout


def test_run_reads_a_pipe(home):
    said = macmlx(
        home, "run", MODEL, "--temperature", "0", input="What is the capital of France?"
    )
    assert said.returncode == 0, said.stderr
    assert "Paris" in said.stdout


def test_ps_names_the_loaded_model(home, server):
    status = json.loads(macmlx(home, "ps", "--json").stdout)
    assert [model["id"] for model in status["models"]] == [MODEL]


def test_failure_is_one_line_with_a_next_step(home):
    failed = macmlx(home, "show", "no-such-model")
    assert failed.returncode != 0
    assert failed.stdout == ""
    assert "no-such-model" in failed.stderr
    assert "panicked" not in failed.stderr


def test_a_second_server_is_refused(home, server):
    refused = macmlx(home, "serve", "--port", "0", timeout=60)
    assert refused.returncode != 0
    assert "already running" in refused.stderr


def test_stop_and_terminate_end_the_server_cleanly(tmp_path):
    stopped = Server(tmp_path)
    assert (tmp_path / "data" / "macmlx.pid").exists()
    assert macmlx(tmp_path, "stop").returncode == 0
    assert stopped.process.wait(timeout=30) == 0
    assert not (tmp_path / "data" / "macmlx.pid").exists()

    terminated = Server(tmp_path)
    assert terminated.stop(signal.SIGTERM) == 0
    assert not (tmp_path / "data" / "macmlx.pid").exists()


@pytest.mark.parametrize("seconds", [0.0, 0.2, 0.4, 0.6, 0.8])
def test_a_server_ends_cleanly_while_it_loads_a_model(tmp_path, home, seconds):
    models = tmp_path / "data" / "models"
    models.parent.mkdir()
    models.symlink_to(home / "data" / "models")
    loading = Server(tmp_path, "--model", MODEL)
    time.sleep(seconds)
    assert loading.stop() == 0


def test_an_api_key_is_asked_for(tmp_path):
    guarded = Server(tmp_path, "--api-key", "secret-key")
    try:
        def models(key):
            return openai.OpenAI(
                base_url=f"{guarded.url}/v1", api_key=key, max_retries=0
            ).models.list()

        assert models("secret-key").data == []
        with pytest.raises(openai.AuthenticationError) as refused:
            models("wrong")
        assert refused.value.code == "invalid_api_key"
    finally:
        assert guarded.stop() == 0
