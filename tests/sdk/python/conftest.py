"""Official SDKs against written answers."""

import os

pytest_plugins = ["harness.playback"]

# Packages that would ask the network for prices, traces or versions.
os.environ |= {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LANGSMITH_TRACING": "false",
    "ANONYMIZED_TELEMETRY": "false",
}
