"""Writes what sentence-transformers makes of the texts with all-MiniLM-L6-v2, in float32.

    python make_expected.py FOLDER     # of the model

Run by hand where the texts change, in an environment with `sentence-transformers` (which brings
torch, some gigabytes). The vectors are kept in float16, which is 2e-4 of a vector of length 1.
"""

import hashlib
import json
import sys
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file
from sentence_transformers import SentenceTransformer
from sentences import texts

EXPECTED = Path(__file__).parent / "expected/all-MiniLM-L6-v2.safetensors"


def digest(of: list[str]) -> str:
    return hashlib.sha256(json.dumps(of).encode()).hexdigest()


if __name__ == "__main__":
    model = SentenceTransformer(sys.argv[1], device="cpu", model_kwargs={"dtype": "float32"})
    vectors = model.encode(texts(), batch_size=1).astype(np.float16)
    EXPECTED.parent.mkdir(exist_ok=True)
    save_file({"vectors": vectors}, EXPECTED, {"texts": digest(texts())})
