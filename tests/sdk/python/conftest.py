"""Official SDKs against written answers, and against a small model."""

import os

pytest_plugins = ["harness.playback", "harness.starter"]

# Packages that would ask the network for prices, traces or versions.
os.environ |= {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LANGSMITH_TRACING": "false",
    "ANONYMIZED_TELEMETRY": "false",
}
