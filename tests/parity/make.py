"""Makes tiny seeded checkpoints and what mlx-lm computes with them.

    python make.py                 # all of fixtures/
    python make.py llama qwen2-q4  # only these
    python make.py --check         # make again and compare with fixtures/
    python make.py --overhead DIR  # a 32-layer model whose arithmetic costs nothing, for `bench`

Each folder holds config.json, model*.safetensors and

    expected.json         ids: `prompt`, `chunks` (lengths), `greedy`, `batch` (prompts and greedy
                          ids of each), `continuation` (ids that follow the prompt under KV
                          quantization)
    expected.safetensors  float32 logits: `prompt` [ids, vocab], `chunked` likewise,
                          `checkpoint_dtype` [ids, vocab] computed in the checkpoint's dtype,
                          `kv_quantized` [ids after the first chunk and continuation, vocab]

Expectations are computed in float32 from the stored weights, whatever their dtype.
"""

import argparse
import filecmp
import json
import shutil
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import mlx.core as mx
import mlx.nn as nn
import numpy as np
from mlx.utils import tree_flatten, tree_map_with_path
from mlx_lm.generate import batch_generate
from mlx_lm.models.cache import KVCache, make_prompt_cache
from mlx_lm.utils import _get_classes, load_model

FIXTURES = Path(__file__).parent / "fixtures"
VOCAB = 96
PROMPT = 24
CHUNKS = [8, 11, 5]
GREEDY = 12
BATCH = [5, 24, 13]
KV_BITS, KV_GROUP = 8, 32
# Greedy ids must not hang on rounding: the best logit leads by this much at each step.
MARGIN = 0.02

BASE = {
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "intermediate_size": 128,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "rms_norm_eps": 1e-5,
    "vocab_size": VOCAB,
    "max_position_embeddings": 512,
    "rope_theta": 10000.0,
    "hidden_act": "silu",
}
LLAMA = BASE | {"model_type": "llama", "tie_word_embeddings": True, "head_dim": 32}
QWEN2 = BASE | {
    "model_type": "qwen2",
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "rope_theta": 1000000.0,
    "tie_word_embeddings": True,
}
QWEN3 = BASE | {
    "model_type": "qwen3",
    "head_dim": 32,
    "rope_theta": 1000000.0,
    "tie_word_embeddings": True,
}
GEMMA3 = BASE | {
    "model_type": "gemma3_text",
    "num_hidden_layers": 3,
    "intermediate_size": 64,
    "head_dim": 32,
    "query_pre_attn_scalar": 24,
    "rope_theta": 1000000.0,
    "rope_local_base_freq": 10000.0,
    "sliding_window": 8,
    "sliding_window_pattern": 3,
    "hidden_activation": "gelu_pytorch_tanh",
}
del GEMMA3["hidden_act"]
PHI3 = BASE | {
    "model_type": "phi3",
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "tie_word_embeddings": False,
    "original_max_position_embeddings": 128,
}
GRANITE = BASE | {
    "model_type": "granite",
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "attention_bias": False,
    "mlp_bias": False,
    "tie_word_embeddings": True,
    "embedding_multiplier": 6.0,
    "attention_multiplier": 0.125,
    "residual_multiplier": 0.4,
    "logits_scaling": 2.0,
}
# The text model inside a checkpoint that also sees; head counts are at their defaults.
GEMMA3_SEEING = {
    "model_type": "gemma3",
    "vocab_size": VOCAB,
    "text_config": {
        key: value
        for key, value in GEMMA3.items()
        if key not in ("vocab_size", "num_attention_heads", "num_key_value_heads")
    },
}
SMOLLM3 = LLAMA | {"model_type": "smollm3"}
STARCODER2 = BASE | {
    "model_type": "starcoder2",
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "norm_epsilon": 1e-5,
    "rope_theta": 100000.0,
    "hidden_act": "gelu",
    "tie_word_embeddings": True,
}
del STARCODER2["rms_norm_eps"]
Q4 = {"bits": 4, "group_size": 64}
Q8 = {"bits": 8, "group_size": 32}
# Bits and groups of one layer each; the others follow the default.
MIXED = Q4 | {
    "model.embed_tokens": {"bits": 8, "group_size": 32},
    "model.layers.0.self_attn.v_proj": False,
    "model.layers.0.mlp.down_proj": {"bits": 6, "group_size": 128},
    "model.layers.1.self_attn.q_proj": {"bits": 2, "group_size": 32},
    "model.layers.1.self_attn.o_proj": {"bits": 3, "group_size": 64},
    "model.layers.1.mlp.gate_proj": {"bits": 5, "group_size": 32},
}
LONG_FACTORS = [round(1 + 0.35 * i, 2) for i in range(12)]

# name: (config, dtype, quantization, shards)
FIXTURE_TABLE = {
    "llama": (LLAMA, mx.float16, None, 1),
    "llama-float32": (
        LLAMA | {"num_hidden_layers": 1, "intermediate_size": 64},
        mx.float32,
        None,
        1,
    ),
    "llama-q4": (LLAMA, mx.bfloat16, Q4, 1),
    "llama-q8": (LLAMA, mx.float16, Q8, 1),
    "llama-mixed": (LLAMA, mx.bfloat16, MIXED, 1),
    "llama-sharded": (LLAMA, mx.bfloat16, None, 2),
    "llama-biases": (
        LLAMA
        | {
            "attention_bias": True,
            "mlp_bias": True,
            "tie_word_embeddings": False,
            "rope_traditional": True,
        },
        mx.bfloat16,
        None,
        1,
    ),
    "llama-sliding": (
        LLAMA
        | {
            "num_hidden_layers": 3,
            "intermediate_size": 64,
            "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
            "sliding_window": 7,
        },
        mx.bfloat16,
        None,
        1,
    ),
    "llama-rope-linear": (
        LLAMA | {"rope_scaling": {"type": "linear", "factor": 4.0}},
        mx.bfloat16,
        None,
        1,
    ),
    "llama-rope-llama3": (
        LLAMA
        | {
            "rope_scaling": {
                "rope_type": "llama3",
                "factor": 8.0,
                "low_freq_factor": 1.0,
                "high_freq_factor": 4.0,
                "original_max_position_embeddings": 256,
            }
        },
        mx.bfloat16,
        None,
        1,
    ),
    "mistral-q4": (LLAMA | {"model_type": "mistral", "sliding_window": None}, mx.bfloat16, Q4, 1),
    "granite": (GRANITE, mx.bfloat16, None, 1),
    "qwen2": (QWEN2, mx.bfloat16, None, 1),
    "qwen2-q4": (QWEN2, mx.float16, Q4, 1),
    "qwen2-rope-yarn": (
        QWEN2
        | {
            "rope_scaling": {
                "type": "yarn",
                "factor": 4.0,
                "original_max_position_embeddings": 128,
            }
        },
        mx.bfloat16,
        None,
        1,
    ),
    "qwen3": (QWEN3, mx.bfloat16, None, 1),
    "qwen3-q8": (QWEN3 | {"tie_word_embeddings": False}, mx.bfloat16, Q8, 1),
    "qwen3-rope-parameters": (
        {k: v for k, v in QWEN3.items() if k != "rope_theta"}
        | {"rope_parameters": {"rope_type": "default", "rope_theta": 5000000.0}},
        mx.bfloat16,
        None,
        1,
    ),
    "gemma3_text": (GEMMA3, mx.bfloat16, None, 1),
    "gemma3_text-q4": (GEMMA3, mx.bfloat16, Q4, 1),
    "gemma3_text-rope-linear": (
        GEMMA3 | {"rope_scaling": {"rope_type": "linear", "factor": 8.0}, "sliding_window": 32},
        mx.bfloat16,
        None,
        1,
    ),
    "gemma3": (
        GEMMA3_SEEING,
        mx.bfloat16,
        Q4 | {"language_model.model.layers.1.self_attn.v_proj": {"bits": 8, "group_size": 32}},
        1,
    ),
    "phi3": (PHI3, mx.bfloat16, None, 1),
    "phi3-q4": (PHI3, mx.bfloat16, Q4, 1),
    "phi3-longrope": (
        PHI3
        | {
            "partial_rotary_factor": 0.75,
            "tie_word_embeddings": True,
            "rope_scaling": {
                "type": "longrope",
                "short_factor": [1.0] * 12,
                "long_factor": LONG_FACTORS,
            },
        },
        mx.bfloat16,
        None,
        1,
    ),
    "smollm3": (SMOLLM3 | {"no_rope_layers": [0, 1]}, mx.bfloat16, None, 1),
    "smollm3-q4": (SMOLLM3 | {"num_hidden_layers": 4}, mx.bfloat16, Q4, 1),
    "starcoder2": (STARCODER2, mx.bfloat16, None, 1),
    "starcoder2-q4": (STARCODER2 | {"tie_word_embeddings": False}, mx.float16, Q4, 1),
}


def seeded(model, config, seed):
    """Random weights by numpy, whose generator does not change between versions of MLX."""
    random = np.random.RandomState(seed)
    one_based = config["model_type"].startswith("gemma3")

    def value(path, array):
        noise = random.standard_normal(array.shape).astype(np.float32)
        if path.endswith("norm.weight"):
            return mx.array((0.0 if one_based else 1.0) + 0.1 * noise)
        if path.endswith("bias"):
            return mx.array(0.1 * noise)
        if path.endswith("embed_tokens.weight"):
            return mx.array((0.2 if one_based else 1.0) * noise)
        return mx.array(noise * (1.5 / np.sqrt(array.shape[-1])))

    model.update(tree_map_with_path(value, model.parameters()))


def write_checkpoint(folder, config, dtype, quantization, shards, seed):
    config = dict(config)
    model_class, args_class = _get_classes(config)
    model = model_class(args_class.from_dict(config))
    if config["model_type"].startswith("gemma3"):
        text_model = model if "text_config" not in config else model.language_model
        text_model.sanitize({})  # ties the head, as published checkpoints do
    seeded(model, config, seed)
    model.set_dtype(dtype)
    if quantization:
        config["quantization"] = quantization
        nn.quantize(
            model,
            quantization["group_size"],
            quantization["bits"],
            class_predicate=lambda path, module: quantization.get(path, True)
            if hasattr(module, "to_quantized")
            else False,
        )
    config["torch_dtype"] = str(dtype).split(".")[-1]
    weights = dict(tree_flatten(model.parameters()))
    if "text_config" in config:
        for part in ("multi_modal_projector", "vision_tower.embeddings"):
            weights[f"{part}.weight"] = mx.zeros((2, 2), dtype)
    weights = dict(sorted(weights.items()))
    names = list(weights)
    if shards == 1:
        mx.save_safetensors(str(folder / "model.safetensors"), weights, {"format": "mlx"})
    else:
        weight_map = {}
        for shard in range(shards):
            file = f"model-{shard + 1:05}-of-{shards:05}.safetensors"
            mine = {name: weights[name] for name in names[shard::shards]}
            weight_map |= dict.fromkeys(mine, file)
            mx.save_safetensors(str(folder / file), mine, {"format": "mlx"})
        index = {"metadata": {}, "weight_map": weight_map}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=1) + "\n")
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")


def run(model, ids, cache):
    return model(mx.array([ids]), cache=cache)[0].astype(mx.float32)


def greedy(model, prompt, count):
    """Greedy ids after the prompt and the smallest lead of the best logit."""
    cache = make_prompt_cache(model)
    ids, lead, logits = [], float("inf"), run(model, prompt, cache)[-1]
    for _ in range(count):
        best = mx.sort(logits)[-2:]
        lead = min(lead, (best[1] - best[0]).item())
        ids.append(mx.argmax(logits).item())
        logits = run(model, ids[-1:], cache)[-1]
    return ids, lead


def kv_quantized(model, prompt, continuation):
    """Logits after the first chunk, with the KV cache quantized from there on."""
    cache = make_prompt_cache(model)
    if not all(isinstance(layer, KVCache) for layer in cache):
        return None
    run(model, prompt[: CHUNKS[0]], cache)
    cache = [layer.to_quantized(group_size=KV_GROUP, bits=KV_BITS) for layer in cache]
    start, logits = CHUNKS[0], []
    for length in CHUNKS[1:]:
        logits.append(run(model, prompt[start : start + length], cache))
        start += length
    logits += [run(model, [token], cache) for token in continuation]
    return mx.concatenate(logits)


def write_expectations(folder, seed):
    """Returns the smallest lead among greedy steps."""
    ids = np.random.RandomState(1000 + seed)
    prompt = ids.randint(0, VOCAB, PROMPT).tolist()
    batch = [ids.randint(0, VOCAB, length).tolist() for length in BATCH]
    model, _ = load_model(folder)
    checkpoint_dtype = run(model, prompt, make_prompt_cache(model))
    model.set_dtype(mx.float32)

    whole = run(model, prompt, make_prompt_cache(model))
    cache, start, chunked = make_prompt_cache(model), 0, []
    for length in CHUNKS:
        chunked.append(run(model, prompt[start : start + length], cache))
        start += length
    greedy_ids, lead = greedy(model, prompt, GREEDY)
    alone = [greedy(model, each, GREEDY) for each in batch]
    lead = min([lead] + [each_lead for _, each_lead in alone])

    tokenizer = SimpleNamespace(eos_token_ids=set(), decode=lambda ids: "")
    together = batch_generate(
        model, tokenizer, batch, max_tokens=GREEDY, return_token_ids=True
    ).token_ids
    if lead >= MARGIN:
        assert [list(each) for each in together] == [each for each, _ in alone], folder.name

    logits = {
        "prompt": whole,
        "chunked": mx.concatenate(chunked),
        "checkpoint_dtype": checkpoint_dtype,
    }
    continuation = greedy_ids[:4]
    quantized = kv_quantized(model, prompt, continuation)
    if quantized is not None:
        logits["kv_quantized"] = quantized
    mx.save_safetensors(str(folder / "expected.safetensors"), dict(sorted(logits.items())))
    expected = {
        "prompt": prompt,
        "chunks": CHUNKS,
        "greedy": greedy_ids,
        "batch": [
            {"prompt": each, "greedy": ids} for each, (ids, _) in zip(batch, alone)
        ],
        "continuation": continuation,
        "kv": {"bits": KV_BITS, "group_size": KV_GROUP},
    }
    (folder / "expected.json").write_text(json.dumps(expected) + "\n")
    return lead


def make(folder, name):
    config, dtype, quantization, shards = FIXTURE_TABLE[name]
    for seed in range(1, 200):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        write_checkpoint(folder, config, dtype, quantization, shards, seed)
        if write_expectations(folder, seed) >= MARGIN:
            size = sum(file.stat().st_size for file in folder.iterdir())
            assert size < 300_000, f"{name} has {size} bytes"
            print(f"{name}: seed {seed}, {size // 1000} kB")
            return
    sys.exit(f"{name}: no seed leads by {MARGIN} at each greedy step")


def same(left, right):
    names = sorted(file.name for file in left.iterdir())
    if not right.is_dir() or names != sorted(file.name for file in right.iterdir()):
        return False
    return filecmp.cmpfiles(left, right, names, shallow=False)[0] == names


def check(names):
    differing = []
    with tempfile.TemporaryDirectory() as scratch:
        for name in names:
            make(Path(scratch) / name, name)
            if not same(Path(scratch) / name, FIXTURES / name):
                differing.append(name)
    if differing:
        sys.exit(f"differ from fixtures/: {', '.join(differing)}")


def overhead(folder):
    """A model of 32 layers with 32 features: what is left of a decode step is the host's work."""
    folder.mkdir(parents=True, exist_ok=True)
    config = LLAMA | {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 32}
    config |= {"num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16}
    write_checkpoint(folder, config, mx.float32, None, 1, 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="fixtures to make; default all")
    parser.add_argument("--check", action="store_true", help="make again and compare")
    parser.add_argument("--overhead", type=Path, metavar="DIR", help="only write that model")
    options = parser.parse_args()
    names = options.names or list(FIXTURE_TABLE)
    if options.overhead:
        overhead(options.overhead)
    elif options.check:
        check(names)
    else:
        for name in names:
            make(FIXTURES / name, name)


if __name__ == "__main__":
    main()
