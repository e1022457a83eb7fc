"""Makes the GGUF files of the import tests and what they must become.

Judges are other people's: `gguf` quantizes, writes and dequantizes, `tokenizers` and `sentencepiece`
tokenize. Seeded; run it again and the files are the same.

    python -m venv venv && venv/bin/pip install gguf==0.19.0 tokenizers==0.23.3 sentencepiece==0.2.3 numpy==2.4.6
    venv/bin/python make.py
"""

import hashlib
import io
import json
import pathlib

import gguf
import numpy as np
import sentencepiece
import tokenizers
from gguf import GGMLQuantizationType as Type
from gguf.quants import dequantize, quantize
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

HERE = pathlib.Path(__file__).parent
HIDDEN, HEADS, KV_HEADS, HEAD, INNER = 32, 4, 2, 16, 64
CORPUS = [
    "The quick brown fox jumps over the lazy dog, and the dog does not mind at all.",
    "In 2024 there were 1234567 things to count: 10, 100, 1000 and 42.",
    "def main():\n    print('hello')\n\n    return 0\n",
    "Größe, naïve café, Привет мир, こんにちは世界, 你好世界。",
    "I'm sure they've said we'll see; it's what you'd expect, isn't it?",
    "   spaces    and\ttabs\r\n\r\nand lines   ",
] * 3
TEXTS = [
    "The dog does not mind 1234 foxes.",
    "  I'M sure we'll see\n\n  it in 2025!\r\n",
    "naïve Größe 世界 🦊 Привет",
    "def f(x):\n\treturn x+1  # done",
    "",
    " ",
    "e\u0301tude",
]
LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")


def split(regex):
    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(tokenizers.Regex(regex), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )


PRE = {
    "qwen2": (normalizers.NFC(), split(QWEN2), False),
    "llama-bpe": (None, split(LLAMA3), True),
    "smollm": (
        None,
        pre_tokenizers.Sequence(
            [
                pre_tokenizers.Digits(individual_digits=True),
                pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
            ]
        ),
        False,
    ),
}


def byte_pair(writer, pre, bos, controls):
    """Trains a byte-level BPE tokenizer and writes it; returns the judge's words."""
    normalizer, pre_tokenizer, ignore_merges = PRE[pre]
    judge = tokenizers.Tokenizer(models.BPE(ignore_merges=ignore_merges))
    if normalizer:
        judge.normalizer = normalizer
    judge.pre_tokenizer = pre_tokenizer
    judge.decoder = decoders.ByteLevel()
    judge.train_from_iterator(
        CORPUS,
        trainers.BpeTrainer(
            vocab_size=320,
            initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
            special_tokens=controls,
            show_progress=False,
        ),
    )
    model = json.loads(judge.to_str())["model"]
    vocabulary = sorted(model["vocab"], key=model["vocab"].get)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(vocabulary)
    writer.add_token_types([3 if token in controls else 1 for token in vocabulary])
    writer.add_token_merges([" ".join(merge) for merge in model["merges"]])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)
    if bos is not None:
        writer.add_add_bos_token(bos)
    first = [0] if (bos or (bos is None and pre == "llama-bpe")) else []
    encoded = [first + judge.encode(text, add_special_tokens=False).ids for text in TEXTS]
    return len(vocabulary), {
        "encoded": encoded,
        "decoded": [judge.decode(ids[len(first) :]) for ids in encoded],
        "marked": {"text": f"{controls[1]}dog", "ids": first + judge.encode(f"{controls[1]}dog").ids},
    }


def sentence_piece(writer, prefix):
    """Trains a SentencePiece BPE model and writes it; returns the judge's words."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(CORPUS),
        model_writer=model,
        model_type="bpe",
        vocab_size=480,
        byte_fallback=True,
        add_dummy_prefix=prefix,
        remove_extra_whitespaces=False,
        normalization_rule_name="identity",
        character_coverage=0.98,
        num_threads=1,
        minloglevel=2,
    )
    judge = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    ids = range(judge.vocab_size())

    def kind(token):
        if judge.is_unknown(token):
            return 2
        if judge.is_control(token):
            return 3
        return 6 if judge.is_byte(token) else 1

    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    writer.add_token_list([judge.id_to_piece(token) for token in ids])
    writer.add_token_scores([judge.get_score(token) for token in ids])
    writer.add_token_types([kind(token) for token in ids])
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_add_space_prefix(prefix)
    encoded = [[1] + judge.encode(text) for text in TEXTS]
    return judge.vocab_size(), {
        "encoded": encoded,
        "decoded": [judge.decode(ids[1:]) for ids in encoded],
    }


def interleave(weight, heads):
    """What llama.cpp's converter does to query and key rows of the llama architecture."""
    return weight.reshape(heads, 2, weight.shape[0] // heads // 2, *weight.shape[1:]).swapaxes(1, 2).reshape(weight.shape)


def make(name, architecture, kind, embedding, tokenizer, *, tied=True, bias=False, rope=None, keys=(), layers=2):
    random = np.random.default_rng(sum(name.encode()))
    path = HERE / f"{name}.gguf"
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_name(name)
    writer.add_context_length(8192)
    writer.add_embedding_length(HIDDEN)
    writer.add_block_count(layers)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_key_length(HEAD)
    writer.add_value_length(HEAD)
    writer.add_rope_dimension_count(HEAD)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(500000.0)
    for method, value in keys:
        getattr(writer, method)(value)
    writer.add_chat_template("{% for message in messages %}{{ message.content }}{% endfor %}")
    vocabulary, words = tokenizer(writer)
    expected = {}

    def put(source, target, shape, stored=kind, heads=None, norm=False):
        weight = random.standard_normal(shape).astype(np.float32)
        if norm:
            # Exact in half precision, as trained norms are.
            weight = weight.astype(np.float16).astype(np.float32)
            if architecture == "gemma3":
                weight = (weight * 0 + np.round(weight * 64) / 64).astype(np.float32)
        written = weight
        if heads:
            written = interleave(weight, heads)
        if norm and architecture == "gemma3":
            written = weight + 1
        data = quantize(written, stored)
        writer.add_tensor(source, data, raw_dtype=stored)
        # Zero has one sign here: `d * (q - 8)` and `d * q - 8 * d` differ in nothing else.
        judged = dequantize(quantize(weight, stored), stored) + np.float32(0)
        expected[target] = {
            "shape": list(shape),
            "head": [float(x) for x in judged.reshape(-1)[:4]],
            "sha256": hashlib.sha256(np.ascontiguousarray(judged, dtype="<f4").tobytes()).hexdigest(),
        }

    norm = {"stored": Type.F32, "norm": True}
    put("token_embd.weight", "model.embed_tokens", (vocabulary, HIDDEN), embedding)
    put("output_norm.weight", "model.norm", (HIDDEN,), **norm)
    if not tied:
        put("output.weight", "lm_head", (vocabulary, HIDDEN), embedding)
    if rope is not None:
        writer.add_tensor("rope_freqs.weight", rope)
    llama = architecture == "llama"
    for layer in range(layers):
        here, there = f"blk.{layer}", f"model.layers.{layer}"
        for part, module, rows, columns, heads in [
            ("attn_q", "self_attn.q_proj", HEADS * HEAD, HIDDEN, HEADS if llama else None),
            ("attn_k", "self_attn.k_proj", KV_HEADS * HEAD, HIDDEN, KV_HEADS if llama else None),
            ("attn_v", "self_attn.v_proj", KV_HEADS * HEAD, HIDDEN, None),
            ("attn_output", "self_attn.o_proj", HIDDEN, HEADS * HEAD, None),
            ("ffn_gate", "mlp.gate_proj", INNER, HIDDEN, None),
            ("ffn_up", "mlp.up_proj", INNER, HIDDEN, None),
            ("ffn_down", "mlp.down_proj", HIDDEN, INNER, None),
        ]:
            put(f"{here}.{part}.weight", f"{there}.{module}", (rows, columns), heads=heads)
            if bias and (part in ("attn_q", "attn_k", "attn_v") or (llama and part == "attn_output")):
                put(f"{here}.{part}.bias", f"{there}.{module}.bias", (rows,), Type.F32, heads=heads, norm=True)
        norms = {"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm"}
        if architecture == "gemma3":
            norms = {
                "attn_norm": "input_layernorm",
                "post_attention_norm": "post_attention_layernorm",
                "ffn_norm": "pre_feedforward_layernorm",
                "post_ffw_norm": "post_feedforward_layernorm",
            }
        for part, module in norms.items():
            put(f"{here}.{part}.weight", f"{there}.{module}", (HIDDEN,), **norm)
        if architecture in ("qwen3", "gemma3"):
            for part, module in [("attn_q_norm", "self_attn.q_norm"), ("attn_k_norm", "self_attn.k_norm")]:
                put(f"{here}.{part}.weight", f"{there}.{module}", (HEAD,), **norm)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    path.with_suffix(".expected.json").write_text(
        json.dumps({"texts": TEXTS, "tokenizer": words, "tensors": expected}, ensure_ascii=False, indent=1) + "\n"
    )
    print(path.name, path.stat().st_size)


def llama3_factors():
    factors = []
    for index in range(HEAD // 2):
        wavelength = 2 * np.pi * 500000.0 ** (2 * index / HEAD)
        if wavelength < 8192 / 4:
            factors.append(1.0)
        elif wavelength > 8192:
            factors.append(8.0)
        else:
            smooth = (8192 / wavelength - 1) / 3
            factors.append(1 / ((1 - smooth) / 8 + smooth))
    return np.array(factors, dtype=np.float32)


CHATML = ["<|endoftext|>", "<|im_end|>", "<|im_start|>"]
LLAMA3_CONTROLS = ["<|begin_of_text|>", "<|eot_id|>", "<|start_header_id|>"]
GEMMA_KEYS = [("add_sliding_window", 512), ("add_rope_scaling_type", gguf.RopeScalingType.LINEAR), ("add_rope_scaling_factor", 8.0)]
YARN = [("add_rope_scaling_type", gguf.RopeScalingType.YARN), ("add_rope_scaling_factor", 4.0), ("add_rope_scaling_orig_ctx_len", 2048)]

make("llama_q4_1", "llama", Type.Q4_1, Type.Q8_0, lambda w: byte_pair(w, "smollm", False, CHATML), bias=True)
make("llama_f16", "llama", Type.F16, Type.F16, lambda w: byte_pair(w, "llama-bpe", None, LLAMA3_CONTROLS), rope=llama3_factors())
make("llama_q4_0", "llama", Type.Q4_0, Type.Q4_0, lambda w: sentence_piece(w, True), tied=False)
make("qwen2_q8_0", "qwen2", Type.Q8_0, Type.Q8_0, lambda w: byte_pair(w, "qwen2", False, CHATML), bias=True)
make("qwen3_q4_0", "qwen3", Type.Q4_0, Type.Q8_0, lambda w: byte_pair(w, "qwen2", False, CHATML), keys=YARN)
make("gemma3_bf16", "gemma3", Type.BF16, Type.BF16, lambda w: sentence_piece(w, False), keys=GEMMA_KEYS)
make("qwen3_f32", "qwen3", Type.F32, Type.F32, lambda w: byte_pair(w, "qwen2", False, CHATML), layers=1)
make("llama_q5_0", "llama", Type.Q5_0, Type.Q8_0, lambda w: byte_pair(w, "smollm", False, CHATML))
