"""Written answers for instructor."""

pytest_plugins = ["harness.playback"]
