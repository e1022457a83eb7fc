"""Written answers for instructor, and those of a small model."""

pytest_plugins = ["harness.playback", "harness.starter"]
