//! How models were taught to fill a gap in a text: the tokens of each family, and their order.

use macmlx_inference::{InferenceError, InfillPrompt};

use crate::Tokenizer;

/// One family's spellings. Of several the first that the vocabulary has is used.
struct Family {
    /// Part of its models' names, where another family spells its tokens alike; else empty.
    name: &'static str,
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

/// Where each row is from. Spellings: what llama.cpp finds by their text (`src/llama-vocab.cpp`), and
/// vocabularies. Orders: the READMEs of Qwen2.5-Coder and DeepSeek-Coder; the reports of `StarCoder` 2
/// and Code Llama, and of Seed-Coder, where the suffix is first; the card of Mellum (suffix first);
/// `encode_fim` of mistral-common and Continue's `core/autocomplete/templating/AutocompleteTemplate.ts`
/// for Codestral (suffix first); `format_fim_prompt` of Zed's edit predictions for GLM; for Falcon
/// `/infill` of llama.cpp, which has one order for all. `CodeGeeX4` has GLM's tokens in another order,
/// within a turn of a chat; it does not run here. Spellings are told apart by all three tokens.
const FAMILIES: &[Family] = &[
    // Mellum, whose tokens StarCoder has, too.
    Family {
        name: "mellum",
        prefix: "<fim_prefix>",
        suffix: "<fim_suffix>",
        middle: "<fim_middle>",
        order: Order::SuffixPrefixMiddle,
        repository: &[],
        file: &["<filename>"],
        ends: &["<fim_pad>"],
    },
    // Qwen, CodeGemma, Granite from 4 on, OLMo.
    Family {
        name: "",
        prefix: "<|fim_prefix|>",
        suffix: "<|fim_suffix|>",
        middle: "<|fim_middle|>",
        order: Order::PrefixSuffixMiddle,
        repository: &["<|repo_name|>", "<|reponame|>", "<|fim_repo|>"],
        file: &["<|file_sep|>", "<|file_separator|>", "<|filename|>"],
        ends: &["<|fim_pad|>"],
    },
    // StarCoder, Granite Code, StableCode.
    Family {
        name: "",
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
        name: "",
        prefix: "<fim-prefix>",
        suffix: "<fim-suffix>",
        middle: "<fim-middle>",
        order: Order::PrefixSuffixMiddle,
        repository: &["<fim-repo>"],
        file: &[],
        ends: &["<fim-pad>"],
    },
    // Seed-Coder.
    Family {
        name: "",
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
        name: "",
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
        name: "",
        prefix: "▁<PRE>",
        suffix: "▁<SUF>",
        middle: "▁<MID>",
        order: Order::PrefixSuffixMiddle,
        repository: &[],
        file: &[],
        ends: &["▁<EOT>"],
    },
    // Code Llama in vocabularies that are not SentencePiece's.
    Family {
        name: "",
        prefix: "<PRE>",
        suffix: "<SUF>",
        middle: "<MID>",
        order: Order::PrefixSuffixMiddle,
        repository: &["<REPO>"],
        file: &[],
        ends: &["<EOT>", "<PAD>"],
    },
    // Falcon-H1-Tiny-Coder.
    Family {
        name: "",
        prefix: "<|prefix|>",
        suffix: "<|suffix|>",
        middle: "<|middle|>",
        order: Order::PrefixSuffixMiddle,
        repository: &[],
        file: &[],
        ends: &[],
    },
    // GLM from 4.5 on.
    Family {
        name: "",
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
        name: "",
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

/// The tokens that a model's own files name, by their text.
#[derive(Debug, Clone, Default)]
pub(crate) struct NamedTokens {
    prefix: Option<String>,
    suffix: Option<String>,
    middle: Option<String>,
    repository: Option<String>,
    file: Option<String>,
    padding: Option<String>,
    /// Ends a gap.
    end: Option<String>,
}

impl NamedTokens {
    /// Reads them as `tokenizer_config.json` names them: the first three and the last as transformers
    /// does for Code Llama, the others as the import of GGUF files does. `text` is a token's text by
    /// the name of its role.
    pub(crate) fn read(text: impl Fn(&str) -> Option<String>) -> Self {
        Self {
            prefix: text("prefix_token"),
            suffix: text("suffix_token"),
            middle: text("middle_token"),
            repository: text("fim_rep_token"),
            file: text("fim_sep_token"),
            padding: text("fim_pad_token"),
            end: text("eot_token"),
        }
    }
}

impl InfillTokens {
    /// The tokens that the files name, else those of a family. `None`: the vocabulary has neither.
    /// `id` is the model's.
    pub(crate) fn of(tokenizer: &Tokenizer, named: &NamedTokens, id: &str) -> Option<Self> {
        let id = id.to_lowercase();
        let mut families = FAMILIES.iter().filter(|family| id.contains(family.name));
        match (&named.prefix, &named.suffix) {
            (Some(prefix), Some(suffix)) => {
                let is_same = |family: &&Family| family.prefix == prefix && family.suffix == suffix;
                Self::named(tokenizer, named, families.clone().find(is_same))
            }
            _ => None,
        }
        .or_else(|| families.find_map(|family| Self::of_family(tokenizer, family)))
    }

    /// The tokens that the files name. What they do not say is as in the family whose tokens they are.
    fn named(tokenizer: &Tokenizer, named: &NamedTokens, family: Option<&Family>) -> Option<Self> {
        let token = |text: &Option<String>| tokenizer.token_id(text.as_deref()?);
        let alike = family.and_then(|family| Self::of_family(tokenizer, family));
        let mut tokens = alike.unwrap_or(Self {
            prefix: token(&named.prefix)?,
            suffix: token(&named.suffix)?,
            middle: None,
            order: Order::PrefixSuffixMiddle,
            repository: None,
            file: None,
            ends: Vec::new(),
        });
        tokens.middle = token(&named.middle).or(tokens.middle);
        tokens.repository = token(&named.repository).or(tokens.repository);
        tokens.file = token(&named.file).or(tokens.file);
        tokens.ends.extend([tokens.prefix, tokens.suffix]);
        let others = [tokens.middle, tokens.repository, tokens.file];
        let named = [token(&named.padding), token(&named.end)];
        tokens
            .ends
            .extend(others.into_iter().chain(named).flatten());
        tokens.ends.sort_unstable();
        tokens.ends.dedup();
        Some(tokens)
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
