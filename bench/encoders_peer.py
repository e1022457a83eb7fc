"""Embeds and reranks with sentence-transformers on the CPU, as lines of JSON ask it to.

    python encoders_peer.py EMBEDDER RERANKER      # folders

A line `{"texts": […]}` or `{"query": "…", "documents": […]}` is answered by one with `seconds` and
`vectors` or `scores`.
"""

import json
import sys
import time

from sentence_transformers import CrossEncoder, SentenceTransformer


def main() -> None:
    # Float32 is what it is fastest in on the CPU, whatever the checkpoint's dtype.
    float32 = {"device": "cpu", "model_kwargs": {"dtype": "float32"}}
    embedder = SentenceTransformer(sys.argv[1], **float32)
    reranker = CrossEncoder(sys.argv[2], **float32)
    for line in sys.stdin:
        request = json.loads(line)
        started = time.perf_counter()
        if "texts" in request:
            texts = request["texts"]
            found = {"vectors": embedder.encode(texts, batch_size=len(texts))}
        else:
            pairs = [(request["query"], document) for document in request["documents"]]
            found = {"scores": reranker.predict(pairs, batch_size=len(pairs))}
        seconds = time.perf_counter() - started
        answer = {name: values.tolist() for name, values in found.items()}
        print(json.dumps(answer | {"seconds": seconds}), flush=True)


if __name__ == "__main__":
    main()
