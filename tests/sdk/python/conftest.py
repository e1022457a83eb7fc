"""Official SDKs against written answers, against a small model and against real encoders."""

import os

pytest_plugins = ["harness.playback", "harness.starter", "harness.encoders"]

# Packages that would ask the network for prices, traces or versions.
os.environ |= {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LANGSMITH_TRACING": "false",
    "ANONYMIZED_TELEMETRY": "false",
}
