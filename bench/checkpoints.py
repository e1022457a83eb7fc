"""Model folders the bench runs on: the starter with float32 scales, and one where arithmetic costs nothing."""

import json
import shutil
from pathlib import Path

import mlx.core as mx

OVERHEAD_LAYERS = 32
OVERHEAD_WIDTH = 64


def widen_to_float32(source: Path, target: Path) -> Path:
    """Copies a model, its half-precision arrays widened to float32 (nothing is lost).

    On x86, MLX's quantized matmul is ten times slower with half-precision scales. Both engines get
    this folder: ours would widen by itself, the peer would be measured at a tenth of its speed.
    """
    if (target / "config.json").exists():
        return target
    target.mkdir(parents=True, exist_ok=True)
    for file in source.iterdir():
        if file.suffix == ".safetensors":
            arrays = mx.load(str(file))
            halves = (mx.float16, mx.bfloat16)
            wide = {
                name: array.astype(mx.float32) if array.dtype in halves else array
                for name, array in arrays.items()
            }
            mx.save_safetensors(str(target / file.name), wide, {"format": "mlx"})
        elif file.name != "config.json":
            shutil.copy(file, target)
    # Last: its presence says that the folder is complete.
    shutil.copy(source / "config.json", target)
    return target


def make_overhead_model(tokenizer_source: Path, target: Path) -> Path:
    """A llama of many layers and tiny dimensions: a decode step is all host and no device."""
    if (target / "config.json").exists():
        return target
    target.mkdir(parents=True, exist_ok=True)
    for name in ("tokenizer.json", "tokenizer_config.json", "generation_config.json"):
        shutil.copy(tokenizer_source / name, target)
    vocab = json.loads((tokenizer_source / "config.json").read_text())["vocab_size"]
    width = OVERHEAD_WIDTH
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": width,
        "intermediate_size": width,
        "num_hidden_layers": OVERHEAD_LAYERS,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 32,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "max_position_embeddings": 8192,
        "vocab_size": vocab,
        "tie_word_embeddings": True,
        "torch_dtype": "float32",
    }
    mx.random.seed(0)
    weights = {
        "model.embed_tokens.weight": mx.random.normal((vocab, width)) * 0.02,
        "model.norm.weight": mx.ones((width,)),
    }
    for layer in range(OVERHEAD_LAYERS):
        prefix = f"model.layers.{layer}"
        for name, rows in {
            "self_attn.q_proj": 64,
            "self_attn.k_proj": 32,
            "self_attn.v_proj": 32,
            "self_attn.o_proj": width,
            "mlp.gate_proj": width,
            "mlp.up_proj": width,
            "mlp.down_proj": width,
        }.items():
            weights[f"{prefix}.{name}.weight"] = mx.random.normal((rows, width)) * 0.05
        for name in ("input_layernorm", "post_attention_layernorm"):
            weights[f"{prefix}.{name}.weight"] = mx.ones((width,))
    mx.save_safetensors(str(target / "model.safetensors"), weights, {"format": "mlx"})
    (target / "config.json").write_text(json.dumps(config, indent=1))
    return target
