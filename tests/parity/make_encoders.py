"""Makes tiny seeded encoder checkpoints and what transformers and sentence-transformers compute.

    python make_encoders.py                    # all of encoders/
    python make_encoders.py bert modernbert    # only these
    python make_encoders.py --check            # make again and compare with encoders/

Each folder holds config.json, model.safetensors, the files of sentence-transformers where the case
is about them, and

    expected.json         `texts`: token ids and where the second segment begins, or null;
                          `answers`: the tokens for yes and no, of a generator that reranks
    expected.safetensors  `texts` [texts, features]: vectors, or scores from 0 to 1;
                          of `bert` also `pool.MODE` [texts, features] for each way of pooling

Expectations are computed in float32 from the stored weights, whatever their dtype.
"""

import argparse
import json
import re
import shutil
import sys
import tempfile
from pathlib import Path

import mlx.core as mx
import numpy as np
import torch
import transformers as hf
from safetensors.torch import save_file
from sentence_transformers.sentence_transformer.modules import Dense, Normalize, Pooling

FIXTURES = Path(__file__).parent / "encoders"
VOCAB = 64
HIDDEN = 32
LENGTHS = [1, 24, 3, 11, 24, 17]

SIZES = {
    "vocab_size": VOCAB,
    "hidden_size": HIDDEN,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 40,
}
BERT = SIZES | {"layer_norm_eps": 1e-12, "hidden_act": "gelu", "type_vocab_size": 2}
ROBERTA = BERT | {"layer_norm_eps": 1e-5, "type_vocab_size": 1, "pad_token_id": 1}
DISTILBERT = {
    "vocab_size": VOCAB,
    "dim": HIDDEN,
    "n_layers": 2,
    "n_heads": 4,
    "hidden_dim": 64,
    "max_position_embeddings": 40,
    "activation": "gelu",
}
NOMIC = SIZES | {"layer_norm_eps": 1e-12, "hidden_act": "silu", "type_vocab_size": 2}
MODERN = SIZES | {
    "num_hidden_layers": 4,
    "intermediate_size": 48,
    "norm_eps": 1e-5,
    "local_attention": 10,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "cls_token_id": 1,
    "sep_token_id": 2,
}
QWEN3 = SIZES | {
    "num_key_value_heads": 2,
    "head_dim": 16,
    "rms_norm_eps": 1e-6,
    "hidden_act": "silu",
    "tie_word_embeddings": True,
    "pad_token_id": 0,
}

# How nomic's own code names and arranges what transformers has.
NOMIC_AUTHORS = {
    "embeddings.LayerNorm": "emb_ln",
    "layers.": "encoder.layers.",
    "self_attn.o_proj": "attn.out_proj",
    "up_proj": "fc11",
    "gate_proj": "fc12",
    "down_proj": "fc2",
    "post_attention_layernorm": "norm1",
    "post_mlp_layernorm": "norm2",
}
NOMIC_AUTHORS_CONFIG = {
    "n_embd": HIDDEN,
    "n_layer": 2,
    "n_head": 4,
    "n_inner": 64,
    "n_positions": 40,
    "activation_function": "swiglu",
    "layer_norm_epsilon": 1e-12,
    "rotary_emb_base": 1000,
    "rotary_emb_fraction": 1.0,
    "rotary_emb_interleaved": False,
    "rotary_emb_scale_base": None,
    "rotary_scaling_factor": None,
    "qkv_proj_bias": False,
    "mlp_fc1_bias": False,
    "mlp_fc2_bias": False,
    "prenorm": False,
    "vocab_size": VOCAB,
    "type_vocab_size": 2,
}
MODERN_OLD_CONFIG = {
    "global_attn_every_n_layers": 3,
    "global_rope_theta": 160000.0,
    "local_rope_theta": 10000.0,
}
POOLING = {"word_embedding_dimension": HIDDEN}
ALL_MODES = {
    "cls": "cls_token",
    "max": "max_tokens",
    "mean": "mean_tokens",
    "mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "weightedmean": "weightedmean_tokens",
    "lasttoken": "lasttoken",
}


def modes(*names: str) -> dict:
    """The switches of 1_Pooling/config.json."""
    return POOLING | {f"pooling_mode_{key}": name in names for name, key in ALL_MODES.items()}


class Case:
    """One folder: a class of transformers, its settings, and what is written beside the weights."""

    def __init__(
        self,
        model: str,
        config: dict,
        dtype=torch.float16,
        pooling: dict | None = None,
        normalize: bool = True,
        dense: dict | None = None,
        prefix: str = "",
        bits: int | None = None,
        segments: bool = False,
        answers: tuple[int, int] | None = None,
        written_config: dict | None = None,
        drop: tuple[str, ...] = (),
        default_pool: str = "mean",
        authors: bool = False,
    ):
        self.model, self.config, self.dtype = model, config, dtype
        self.pooling, self.normalize, self.dense = pooling, normalize, dense
        self.prefix, self.bits, self.segments, self.answers = prefix, bits, segments, answers
        self.written_config, self.drop = written_config, drop
        self.default_pool, self.authors = default_pool, authors


SCORE = {"num_labels": 1}
CASES = {
    # All that some exporter writes and no vector needs: a pooler, position ids.
    "bert": Case("BertModel", BERT, pooling=modes("mean"), segments=True),
    "bert-plain": Case("BertForMaskedLM", BERT, dtype=torch.float32),
    "bert-two-pools": Case("BertModel", BERT, pooling=modes("mean", "cls"), normalize=False),
    "bert-named-pool": Case("BertModel", BERT, pooling=POOLING | {"pooling_mode": "max"}),
    "bert-dense": Case(
        "BertModel",
        BERT,
        pooling=modes("cls"),
        dense={"in_features": HIDDEN, "out_features": 16, "bias": True},
    ),
    "bert-gelu-new": Case("BertModel", BERT | {"hidden_act": "gelu_new"}),
    "bert-q4": Case("BertModel", BERT, pooling=modes("mean"), bits=4),
    "bert-q8": Case("BertModel", BERT, pooling=modes("mean"), bits=8),
    "bert-score": Case("BertForSequenceClassification", BERT | SCORE, segments=True),
    "bert-score-q8": Case("BertForSequenceClassification", BERT | SCORE, segments=True, bits=8),
    "roberta": Case("RobertaModel", ROBERTA, pooling=modes("mean")),
    "roberta-score": Case("RobertaForSequenceClassification", ROBERTA | SCORE),
    "xlm-roberta": Case("XLMRobertaModel", ROBERTA, pooling=modes("cls"), dtype=torch.bfloat16),
    "xlm-roberta-score": Case("XLMRobertaForSequenceClassification", ROBERTA | SCORE),
    "camembert": Case("CamembertModel", ROBERTA, pooling=modes("mean")),
    "distilbert": Case("DistilBertModel", DISTILBERT, pooling=modes("mean")),
    "distilbert-score": Case("DistilBertForSequenceClassification", DISTILBERT | SCORE),
    "nomic_bert": Case("NomicBertModel", NOMIC, pooling=modes("mean"), segments=True),
    "nomic_bert-authors": Case(
        "NomicBertModel",
        NOMIC,
        pooling=modes("mean"),
        segments=True,
        authors=True,
        written_config=NOMIC_AUTHORS_CONFIG,
    ),
    "nomic_bert-score": Case("NomicBertForSequenceClassification", NOMIC | SCORE, segments=True),
    "modernbert": Case("ModernBertModel", MODERN, pooling=modes("cls")),
    "modernbert-old-config": Case(
        "ModernBertForMaskedLM",
        MODERN,
        written_config={k: v for k, v in MODERN.items()} | MODERN_OLD_CONFIG,
    ),
    "modernbert-score": Case(
        "ModernBertForSequenceClassification", MODERN | SCORE | {"classifier_pooling": "mean"}
    ),
    "modernbert-score-biases": Case(
        "ModernBertForSequenceClassification",
        MODERN
        | SCORE
        | {"attention_bias": True, "mlp_bias": True, "norm_bias": True, "classifier_bias": True},
    ),
    "qwen3": Case("Qwen3Model", QWEN3, pooling=modes("lasttoken"), dtype=torch.bfloat16),
    "qwen3-causal": Case("Qwen3ForCausalLM", QWEN3, default_pool="lasttoken"),
    "qwen3-q8": Case("Qwen3ForCausalLM", QWEN3, default_pool="lasttoken", bits=8),
    "qwen3-answers": Case("Qwen3ForCausalLM", QWEN3, answers=(7, 50)),
    "qwen3-answers-untied": Case(
        "Qwen3ForCausalLM", QWEN3 | {"tie_word_embeddings": False}, answers=(7, 50)
    ),
    "qwen3-score": Case("Qwen3ForSequenceClassification", QWEN3 | SCORE),
}


def write_json(path: Path, value) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=1) + "\n")


def seeded(model: torch.nn.Module, seed: int) -> None:
    """Random weights by numpy, whose generator does not change between versions of torch."""
    random = np.random.RandomState(seed)
    for name, parameter in sorted(model.named_parameters()):
        noise = random.standard_normal(tuple(parameter.shape)).astype(np.float32)
        if parameter.ndim == 1:
            is_norm = "norm" in name.lower() and name.endswith("weight")
            noise = (1.0 if is_norm else 0.0) + 0.1 * noise
        elif "embeddings" not in name and "embed_tokens" not in name:
            noise *= 1.5 / np.sqrt(parameter.shape[-1])
        parameter.data = torch.from_numpy(noise)


def quantize(weights: dict[str, torch.Tensor], bits: int) -> dict[str, torch.Tensor]:
    """Matrices as MLX packs them, in groups of 32."""
    packed = {}
    for name, value in weights.items():
        if value.ndim == 2 and name.endswith(".weight") and value.shape[0] > 1:
            path = name.removesuffix(".weight")
            w, scales, biases = mx.quantize(mx.array(value.float().numpy()), 32, bits)
            packed[name] = torch.from_numpy(np.array(w).view(np.int32)).view(torch.uint32)
            packed[path + ".scales"] = torch.from_numpy(np.array(scales)).to(torch.float16)
            packed[path + ".biases"] = torch.from_numpy(np.array(biases)).to(torch.float16)
        else:
            packed[name] = value
    return packed


def dequantize(weights: dict[str, torch.Tensor], bits: int) -> dict[str, torch.Tensor]:
    """What `quantize` kept, in float32."""
    kept = {}
    for name, value in weights.items():
        path = name.removesuffix(".weight")
        if path + ".scales" in weights and name.endswith(".weight"):
            w = mx.array(value.view(torch.int32).numpy().view(np.uint32))
            scales, biases = (
                mx.array(weights[f"{path}.{part}"].float().numpy()) for part in ("scales", "biases")
            )
            kept[name] = torch.from_numpy(np.array(mx.dequantize(w, scales, biases, 32, bits)))
        elif not name.endswith((".scales", ".biases")):
            kept[name] = value.float()
    return kept


def as_authors(weights: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Nomic's own names, queries, keys and values in one matrix."""
    renamed = {}
    for name, value in weights.items():
        if ".self_attn.q_proj" in name:
            qkv = [weights[name.replace("q_proj", f"{letter}_proj")] for letter in "qkv"]
            name, value = name.replace("self_attn.q_proj", "attn.Wqkv"), torch.cat(qkv)
        elif re.search(r"self_attn\.[kv]_proj", name):
            continue
        for theirs, authors in NOMIC_AUTHORS.items():
            name = name.replace(theirs, authors)
        renamed[name] = value.contiguous()
    return renamed


def texts(case: Case, seed: int) -> list[dict]:
    random = np.random.RandomState(1000 + seed)
    made = []
    for index, length in enumerate(LENGTHS):
        # Ids above those with a meaning of their own.
        ids = random.randint(3, VOCAB, length).tolist()
        second = length // 2 if case.segments and length > 3 and index % 2 == 1 else None
        made.append({"tokens": ids, "second_segment": second})
    return made


def run(model, text: dict, case: Case) -> dict:
    """The model's answer to one text, alone and so without padding."""
    ids = torch.tensor([text["tokens"]])
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    if case.segments:
        start = text["second_segment"]
        types = [int(start is not None and i >= start) for i in range(ids.shape[1])]
        inputs["token_type_ids"] = torch.tensor([types])
    with torch.no_grad():
        if "SequenceClassification" in case.model or case.answers:
            return {"logits": model(**inputs).logits}
        base = model.base_model if hasattr(model, "base_model") else model
        return {"token_embeddings": base(**inputs)[0], "attention_mask": inputs["attention_mask"]}


def pooled(folder: Path, case: Case, outputs: list[dict]) -> torch.Tensor:
    """Vectors by sentence-transformers' own modules, as the folder configures them."""
    if case.pooling is None:
        modules = [Pooling(HIDDEN, case.default_pool), Normalize()]
    else:
        modules = [Pooling.load(str(folder), subfolder="1_Pooling")]
        if case.dense:
            modules.append(Dense.load(str(folder), subfolder="2_Dense"))
        if case.normalize:
            modules.append(Normalize())
    vectors = []
    for output in outputs:
        features = dict(output)
        with torch.no_grad():
            for module in modules:
                features = module(features)
        vectors.append(features["sentence_embedding"][0])
    return torch.stack(vectors)


def write_modules(folder: Path, case: Case, seed: int) -> None:
    modules = [("", "Transformer"), ("1_Pooling", "Pooling")]
    write_json(folder / "1_Pooling/config.json", case.pooling)
    if case.dense:
        modules.append(("2_Dense", "Dense"))
        dense = Dense(**case.dense)
        seeded(dense, seed + 1)
        write_json(folder / "2_Dense/config.json", dense.get_config_dict())
        save_file(dense.state_dict(), folder / "2_Dense/model.safetensors")
    if case.normalize:
        modules.append((f"{len(modules)}_Normalize", "Normalize"))
    listed = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (path, kind) in enumerate(modules)
    ]
    write_json(folder / "modules.json", listed)


def make(folder: Path, name: str) -> None:
    case, seed = CASES[name], 1 + list(CASES).index(name)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    model_class = getattr(hf, case.model)
    config = model_class.config_class(**case.config)
    config._attn_implementation = "eager"
    model = model_class(config).eval()
    seeded(model, seed)
    model.tie_weights()
    tied = set(getattr(model, "all_tied_weights_keys", None) or ())
    weights = {
        key: value.to(case.dtype).contiguous()
        for key, value in model.state_dict().items()
        if key not in tied and value.is_floating_point()
    }
    if case.bits:
        weights = quantize(weights, case.bits)
        stored = dequantize(weights, case.bits)
    else:
        stored = {key: value.float() for key, value in weights.items()}
    missing, unexpected = model.load_state_dict(stored, strict=False)
    assert not unexpected and set(missing) <= tied, (missing, unexpected)
    model.tie_weights()

    if case.authors:
        weights = as_authors(weights)
    if name == "bert":
        weights["embeddings.position_ids"] = torch.arange(40)[None]
    save_file(dict(sorted(weights.items())), folder / "model.safetensors", {"format": "pt"})
    written = case.written_config or {
        key: value
        for key, value in config.to_dict().items()
        if key in case.config or key in ("pad_token_id", "layer_types", "rope_parameters")
    }
    written = {"architectures": [case.model], "model_type": config.model_type} | written
    if "num_labels" in case.config:
        written |= {"id2label": {"0": "LABEL_0"}}
    if case.bits:
        written["quantization"] = {"bits": case.bits, "group_size": 32}
    write_json(folder / "config.json", written)
    if case.pooling is not None:
        write_modules(folder, case, seed)

    inputs = texts(case, seed)
    outputs = [run(model, text, case) for text in inputs]
    expected = {}
    if case.answers:
        yes, no = case.answers
        last = torch.stack([output["logits"][0, -1] for output in outputs])
        pair = torch.stack([last[:, no], last[:, yes]], dim=1)
        expected["texts"] = torch.softmax(pair, dim=1)[:, 1:].contiguous()
    elif "logits" in outputs[0]:
        expected["texts"] = torch.sigmoid(torch.cat([output["logits"] for output in outputs]))
    else:
        expected["texts"] = pooled(folder, case, outputs)
    if name == "bert":
        for mode in ALL_MODES:
            pool = Pooling(HIDDEN, mode)
            rows = [pool(dict(output))["sentence_embedding"][0] for output in outputs]
            expected[f"pool.{mode}"] = torch.stack(rows)
    save_file(expected, folder / "expected.safetensors")
    answers = dict(zip(("yes", "no"), case.answers)) if case.answers else None
    (folder / "expected.json").write_text(json.dumps({"texts": inputs, "answers": answers}) + "\n")
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    assert size < 200_000, f"{name} has {size} bytes"
    spread = expected["texts"].std(dim=0).mean()
    print(f"{name}: {size // 1000} kB, spread {spread:.3f}")


def files(folder: Path) -> dict[Path, bytes]:
    return {file.relative_to(folder): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="fixtures to make; default all")
    parser.add_argument("--check", action="store_true", help="make again and compare")
    options = parser.parse_args()
    names = options.names or list(CASES)
    if not options.check:
        for name in names:
            make(FIXTURES / name, name)
        return
    differing = []
    with tempfile.TemporaryDirectory() as scratch:
        for name in names:
            make(Path(scratch) / name, name)
            if files(Path(scratch) / name) != files(FIXTURES / name):
                differing.append(name)
    if differing:
        sys.exit(f"differ from encoders/: {', '.join(differing)}")


if __name__ == "__main__":
    main()
