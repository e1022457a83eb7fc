//! How models were taught to fill a gap in a text: the tokens of each family, and their order.

use macmlx_inference::{InferenceError, InfillPrompt};

use crate::Tokenizer;

/// One family's spellings. Of several the first that the vocabulary has is used.
struct Family {
    prefix: &'static str,
    suffix: &'static str,
    /// Empty: the gap is what follows.
    middle: &'static str,
    order: Order,
    /// Begins a repository; its name follows.
    repository: &'static [&'static str],
    /// Begins a file; its path and its text follow.
    file: &'static [&'static str],
    /// End the output, beside all the others.
    ends: &'static [&'static str],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    PrefixSuffixMiddle,
    SuffixPrefixMiddle,
}

/// The orders are those of the models' own cards. Spellings are told apart by all three tokens.
const FAMILIES: &[Family] = &[
    // Qwen, CodeGemma, Granite from 4 on, OLMo.
    Family {
        prefix: "<|fim_prefix|>",
        suffix: "<|fim_suffix|>",
        middle: "<|fim_middle|>",
        order: Order::PrefixSuffixMiddle,
        repository: &["<|repo_name|>", "<|reponame|>"],
        file: &["<|file_sep|>", "<|file_separator|>", "<|filename|>"],
        ends: &["<|fim_pad|>"],
    },
    // StarCoder, Granite Code, StableCode.
    Family {
        prefix: "<fim_prefix>",
        suffix: "<fim_suffix>",
        middle: "<fim_middle>",
        order: Order::PrefixSuffixMiddle,
        repository: &["<repo_name>", "<reponame>"],
        file: &["<file_sep>", "<filename>"],
        ends: &["<fim_pad>"],
    },
    // SantaCoder.
    Family {
        prefix: "<fim-prefix>",
        suffix: "<fim-suffix>",
        middle: "<fim-middle>",
        order: Order::PrefixSuffixMiddle,
        repository: &[],
        file: &[],
        ends: &["<fim-pad>"],
    },
    // Seed-Coder.
    Family {
        prefix: "<[fim-prefix]>",
        suffix: "<[fim-suffix]>",
        middle: "<[fim-middle]>",
        order: Order::SuffixPrefixMiddle,
        repository: &[],
        file: &[],
        ends: &[],
    },
    // DeepSeek-Coder and its heirs.
    Family {
        prefix: "<｜fim▁begin｜>",
        suffix: "<｜fim▁hole｜>",
        middle: "<｜fim▁end｜>",
        order: Order::PrefixSuffixMiddle,
        repository: &[],
        file: &[],
        ends: &[],
    },
    // Code Llama.
    Family {
        prefix: "▁<PRE>",
        suffix: "▁<SUF>",
        middle: "▁<MID>",
        order: Order::PrefixSuffixMiddle,
        repository: &[],
        file: &[],
        ends: &["▁<EOT>"],
    },
    // GLM.
    Family {
        prefix: "<|code_prefix|>",
        suffix: "<|code_suffix|>",
        middle: "<|code_middle|>",
        order: Order::PrefixSuffixMiddle,
        repository: &[],
        file: &[],
        ends: &[],
    },
    // Codestral and other models of Mistral.
    Family {
        prefix: "[PREFIX]",
        suffix: "[SUFFIX]",
        middle: "",
        order: Order::SuffixPrefixMiddle,
        repository: &[],
        file: &[],
        ends: &["[MIDDLE]"],
    },
];

/// A repository and a file that have no name.
const REPOSITORY: &str = "repository";
const FILE: &str = "file";

/// A model's fill-in-the-middle tokens.
#[derive(Debug)]
pub(crate) struct InfillTokens {
    prefix: u32,
    suffix: u32,
    middle: Option<u32>,
    order: Order,
    repository: Option<u32>,
    file: Option<u32>,
    ends: Vec<u32>,
}

impl InfillTokens {
    /// `None`: the vocabulary has no family's tokens.
    pub(crate) fn of(tokenizer: &Tokenizer) -> Option<Self> {
        FAMILIES
            .iter()
            .find_map(|family| Self::of_family(tokenizer, family))
    }

    fn of_family(tokenizer: &Tokenizer, family: &Family) -> Option<Self> {
        let first = |spellings: &[&str]| {
            let mut known = spellings.iter().filter_map(|text| tokenizer.token_id(text));
            known.next()
        };
        let mut tokens = Self {
            prefix: tokenizer.token_id(family.prefix)?,
            suffix: tokenizer.token_id(family.suffix)?,
            middle: match family.middle {
                "" => None,
                text => Some(tokenizer.token_id(text)?),
            },
            order: family.order,
            repository: first(family.repository),
            file: first(family.file),
            ends: Vec::new(),
        };
        let others = family
            .ends
            .iter()
            .filter_map(|text| tokenizer.token_id(text));
        tokens.ends = [tokens.prefix, tokens.suffix]
            .into_iter()
            .chain(others)
            .collect();
        let optional = [tokens.middle, tokens.repository, tokens.file];
        tokens.ends.extend(optional.into_iter().flatten());
        Some(tokens)
    }

    /// Tokens that end a gap: none of them is text of it.
    pub(crate) fn end_tokens(&self) -> &[u32] {
        &self.ends
    }

    /// The whole prompt, with the token that begins a text where the tokenizer adds one.
    pub(crate) fn prompt(
        &self,
        tokenizer: &Tokenizer,
        gap: &InfillPrompt,
    ) -> Result<Vec<u32>, InferenceError> {
        let mut tokens = tokenizer.encode("", true)?;
        // Some tokenizers end a text, too.
        tokens.retain(|id| tokenizer.bos_token_id() == Some(*id));
        self.add_files(tokenizer, gap, &mut tokens)?;
        let prefix = [vec![self.prefix], tokenizer.encode(&gap.prefix, false)?].concat();
        let suffix = [vec![self.suffix], encode_within(tokenizer, &gap.suffix)?].concat();
        tokens.extend(match self.order {
            Order::PrefixSuffixMiddle => [prefix, suffix].concat(),
            Order::SuffixPrefixMiddle => [suffix, prefix].concat(),
        });
        tokens.extend(self.middle);
        tokens.extend(encode_within(tokenizer, &gap.start)?);
        Ok(tokens)
    }

    fn add_files(
        &self,
        tokenizer: &Tokenizer,
        gap: &InfillPrompt,
        tokens: &mut Vec<u32>,
    ) -> Result<(), InferenceError> {
        if gap.files.is_empty() {
            return Ok(());
        }
        if let (Some(repository), Some(_)) = (self.repository, self.file) {
            tokens.push(repository);
            tokens.extend(encode_within(tokenizer, &format!("{REPOSITORY}\n"))?);
        }
        for other in &gap.files {
            let name = if other.name.is_empty() {
                FILE
            } else {
                &other.name
            };
            let text = match self.file {
                Some(file) => {
                    tokens.push(file);
                    format!("{name}\n{}", other.text)
                }
                // The model knows files only as text.
                None => format!("\n\n--- {name} ---\n\n{}", other.text),
            };
            tokens.extend(encode_within(tokenizer, &text)?);
        }
        if let Some(file) = self.file {
            tokens.push(file);
            tokens.extend(encode_within(tokenizer, &format!("{FILE}\n"))?);
        }
        Ok(())
    }
}

/// Tokenizes a text that goes on from another: no space is put before it.
fn encode_within(tokenizer: &Tokenizer, text: &str) -> Result<Vec<u32>, InferenceError> {
    /// Stands for the other text. No word has it, so that no token spans the border.
    const BEFORE: &str = "\u{263a}";
    if text.is_empty() || tokenizer.leading_spaces() == 0 {
        return tokenizer.encode(text, false);
    }
    let before = tokenizer.encode(BEFORE, false)?;
    let both = tokenizer.encode(&format!("{BEFORE}{text}"), false)?;
    match both.strip_prefix(&*before) {
        Some(within) => Ok(within.to_vec()),
        None => tokenizer.encode(text, false),
    }
}
