//! Reasoning between markers: which ones, by the families that write them.

use crate::readers::marked_reasoning::MarkedReasoning;

/// Qwen3, `DeepSeek` R1, `SmolLM3`, GLM, `MiniMax`, Kimi and many others.
pub(super) static THINK: MarkedReasoning = MarkedReasoning {
    name: "think",
    detect: |template| template.contains("<think>") || template.contains("</think>"),
    open: &["<think>"],
    close: "</think>",
    close_early: "\n</think>\n\n",
    silent: &[],
};

/// Magistral and the Ministral reasoning models.
pub(super) static MAGISTRAL: MarkedReasoning = MarkedReasoning {
    name: "magistral",
    detect: |template| template.contains("[THINK]"),
    open: &["[THINK]"],
    close: "[/THINK]",
    close_early: "[/THINK]",
    silent: &[],
};

/// Seed-OSS.
pub(super) static SEED: MarkedReasoning = MarkedReasoning {
    name: "seed_oss",
    detect: |template| template.contains("<seed:think>") || template.contains("seed:think"),
    open: &["<seed:think>"],
    close: "</seed:think>",
    close_early: "\n</seed:think>\n",
    silent: &[],
};

/// `LongCat` Flash Thinking.
pub(super) static LONGCAT: MarkedReasoning = MarkedReasoning {
    name: "longcat",
    detect: |template| template.contains("<longcat_think>"),
    open: &["<longcat_think>"],
    close: "</longcat_think>",
    close_early: "\n</longcat_think>\n",
    silent: &[],
};

/// Command R7B and Command A, which also mark the answer.
pub(super) static COMMAND: MarkedReasoning = MarkedReasoning {
    name: "command_r7b",
    detect: |template| {
        template.contains("<|START_THINKING|>") || template.contains("<|START_RESPONSE|>")
    },
    open: &["<|START_THINKING|>"],
    close: "<|END_THINKING|>",
    close_early: "<|END_THINKING|>",
    silent: &[
        "<|START_RESPONSE|>",
        "<|END_RESPONSE|>",
        "<|START_TEXT|>",
        "<|END_TEXT|>",
    ],
};

/// Gemma 4.
pub(super) static GEMMA4: MarkedReasoning = MarkedReasoning {
    name: "gemma4",
    detect: |template| template.contains("<|channel>"),
    open: &["<|channel>thought"],
    close: "<channel|>",
    close_early: "\n<channel|>",
    silent: &[],
};

/// Kimi-VL Thinking.
pub(super) static KIMI_VL: MarkedReasoning = MarkedReasoning {
    name: "kimi_vl",
    detect: |template| template.contains("◁think▷"),
    open: &["◁think▷"],
    close: "◁/think▷",
    close_early: "◁/think▷",
    silent: &[],
};

/// EXAONE Deep.
pub(super) static EXAONE_DEEP: MarkedReasoning = MarkedReasoning {
    name: "exaone_deep",
    detect: |template| template.contains("<thought>"),
    open: &["<thought>"],
    close: "</thought>",
    close_early: "\n</thought>\n\n",
    silent: &[],
};

/// Apertus.
pub(super) static APERTUS: MarkedReasoning = MarkedReasoning {
    name: "apertus",
    detect: |template| template.contains("<|inner_prefix|>"),
    open: &["<|inner_prefix|>"],
    close: "<|inner_suffix|>",
    close_early: "<|inner_suffix|>",
    silent: &[],
};

/// Granite 3.2, in words rather than markers.
pub(super) static GRANITE: MarkedReasoning = MarkedReasoning {
    name: "granite_words",
    detect: |template| template.contains("Here is my thought process:"),
    open: &["Here is my thought process:", "Here's my thought process:"],
    close: "Here is my response:",
    close_early: "\n\nHere is my response:\n\n",
    silent: &[],
};

/// Granite 3.3, which also marks the answer.
pub(super) static GRANITE_RESPONSE: MarkedReasoning = MarkedReasoning {
    name: "granite",
    detect: |template| template.contains("<|start_of_role|>") && template.contains("<response>"),
    open: &["<think>"],
    close: "</think>",
    close_early: "</think><response>",
    silent: &["<response>", "</response>"],
};

/// `MiniMax` M3.
pub(super) static MINIMAX_M3: MarkedReasoning = MarkedReasoning {
    name: "minimax_m3",
    detect: |template| template.contains("<mm:think>"),
    open: &["<mm:think>"],
    close: "</mm:think>",
    close_early: "</mm:think>",
    silent: &[],
};

/// Hunyuan A13B, which also marks the answer.
pub(super) static HUNYUAN: MarkedReasoning = MarkedReasoning {
    name: "hunyuan",
    detect: |template| template.contains("<answer>"),
    open: &["<think>"],
    close: "</think>",
    close_early: "\n</think>\n",
    silent: &["<answer>", "</answer>"],
};
