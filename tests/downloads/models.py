"""Tiny models as the double serves them: real files of the right form, with small random weights."""

import json
import random
import struct
from pathlib import Path


def safetensors(tensors: dict[str, list[int]], seed: int) -> bytes:
    """Float32 tensors of given shapes."""
    header: dict[str, dict] = {}
    offset = 0
    for name, shape in tensors.items():
        size = 4
        for dimension in shape:
            size *= dimension
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + random.Random(seed).randbytes(offset)


def llama(folder: Path, *, hidden: int, seed: int, is_gated: bool = False) -> None:
    """A llama of one layer."""
    vocabulary = 64
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": hidden,
        "intermediate_size": 2 * hidden,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "num_hidden_layers": 1,
        "vocab_size": vocabulary,
        "max_position_embeddings": 512,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "tie_word_embeddings": True,
        "torch_dtype": "float32",
    }
    layer = "model.layers.0"
    tensors = {
        "model.embed_tokens.weight": [vocabulary, hidden],
        f"{layer}.self_attn.q_proj.weight": [hidden, hidden],
        f"{layer}.self_attn.k_proj.weight": [hidden // 2, hidden],
        f"{layer}.self_attn.v_proj.weight": [hidden // 2, hidden],
        f"{layer}.self_attn.o_proj.weight": [hidden, hidden],
        f"{layer}.mlp.gate_proj.weight": [2 * hidden, hidden],
        f"{layer}.mlp.up_proj.weight": [2 * hidden, hidden],
        f"{layer}.mlp.down_proj.weight": [hidden, 2 * hidden],
        f"{layer}.input_layernorm.weight": [hidden],
        f"{layer}.post_attention_layernorm.weight": [hidden],
        "model.norm.weight": [hidden],
    }
    tokens = {character: index for index, character in enumerate(map(chr, range(32, 32 + vocabulary)))}
    tokenizer = {
        "version": "1.0",
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": None,
        "post_processor": None,
        "decoder": None,
        "model": {"type": "BPE", "vocab": tokens, "merges": []},
    }
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    (folder / "tokenizer_config.json").write_text(json.dumps({"model_max_length": 512}))
    (folder / "README.md").write_text(f"---\nlicense: mit\n---\n\n# {folder.name}\n")
    (folder / "model.safetensors").write_bytes(safetensors(tensors, seed))
    if is_gated:
        (folder / ".gated").touch()
