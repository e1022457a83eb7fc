//! The streaming detokenizer against detokenizing at once, on both families of tokenizers.

use std::sync::Arc;

use macmlx_chat::{Detokenizer, FirstSpace, SpecialTokens, Tokenizer};

use crate::tokenizers;

fn load(folder: &tempfile::TempDir) -> Arc<Tokenizer> {
    Arc::new(Tokenizer::load(folder.path(), "org/model").unwrap())
}

/// Ids from a fixed generator (xorshift), so that failures repeat.
fn random_ids(seed: u64, len: usize, vocab: usize) -> Vec<u32> {
    let mut state = seed * 2 + 1;
    (0..len)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state % vocab as u64) as u32
        })
        .collect()
}

/// Feeds all ids; checks at each step that exactly the unfinished character is held back.
fn stream(tokenizer: &Arc<Tokenizer>, ids: &[u32]) -> String {
    let mut detokenizer = Detokenizer::new(
        Arc::clone(tokenizer),
        SpecialTokens::Show,
        FirstSpace::Strip,
    );
    let mut text = String::new();
    for (index, id) in ids.iter().enumerate() {
        text.push_str(detokenizer.push(*id));
        let whole = tokenizer.detokenize(&ids[..=index]);
        if detokenizer.is_pending() {
            // At once, the unfinished character is one U+FFFD.
            assert_eq!(text.clone() + "\u{FFFD}", whole, "{:?}", &ids[..=index]);
        } else {
            assert_eq!(text, whole, "{:?}", &ids[..=index]);
        }
    }
    text.push_str(detokenizer.finish());
    text
}

#[test]
fn any_ids_give_the_text_of_all_of_them_at_once() {
    for folder in [tokenizers::byte_level(), tokenizers::sentence_piece()] {
        let tokenizer = load(&folder);
        for seed in 0..400 {
            let ids = random_ids(seed, 24, tokenizer.vocab_size());
            assert_eq!(stream(&tokenizer, &ids), tokenizer.detokenize(&ids));
        }
    }
}

#[test]
fn text_comes_back_from_its_ids() {
    let texts = [
        "hello hello",
        "  two  spaces ",
        "é 👋 ünïcode 你好\n\ttab",
        "a\u{0}b\u{7f}\u{ad}",
        "<|im_start|>user<think>x</think>",
    ];
    let tokenizer = load(&tokenizers::byte_level());
    for text in texts {
        let ids = tokenizer.encode(text, false).unwrap();
        assert_eq!(tokenizer.detokenize(&ids), text);
        assert_eq!(stream(&tokenizer, &ids), text);
    }
    let tokenizer = load(&tokenizers::sentence_piece());
    for text in &texts[..4] {
        let ids = tokenizer.encode(text, false).unwrap();
        assert_eq!(tokenizer.detokenize(&ids), *text);
    }
}

#[test]
fn every_character_across_every_cut_of_its_bytes() {
    let tokenizer = load(&tokenizers::sentence_piece());
    for character in ["é", "€", "👋", "\u{10FFFF}"] {
        let ids: Vec<u32> = character.bytes().map(|byte| 3 + u32::from(byte)).collect();
        let mut detokenizer = Detokenizer::new(
            Arc::clone(&tokenizer),
            SpecialTokens::Hide,
            FirstSpace::Strip,
        );
        let (last, first) = ids.split_last().unwrap();
        for id in first {
            assert_eq!(detokenizer.push(*id), "");
        }
        assert_eq!(detokenizer.push(*last), character);
        // Without its last byte it is one replacement, as soon as that is certain.
        for id in first {
            assert_eq!(detokenizer.push(*id), "");
        }
        assert_eq!(detokenizer.push(3 + u32::from(b'x')), "\u{FFFD}x");
        detokenizer.push(first[0]);
        assert_eq!(detokenizer.finish(), "\u{FFFD}");
        assert_eq!(detokenizer.finish(), "");
    }
}

#[test]
fn bytes_that_begin_no_character_are_replaced_at_once() {
    let tokenizer = load(&tokenizers::sentence_piece());
    let mut detokenizer = Detokenizer::new(
        Arc::clone(&tokenizer),
        SpecialTokens::Hide,
        FirstSpace::Strip,
    );
    for byte in [0xFF_u32, 0x80, 0xC0, 0xF5] {
        assert_eq!(detokenizer.push(3 + byte), "\u{FFFD}");
    }
    // E0 must be followed by A0..BF: both bytes are wrong as soon as the second comes.
    assert_eq!(detokenizer.push(3 + 0xE0), "");
    assert_eq!(detokenizer.push(3 + 0x80), "\u{FFFD}\u{FFFD}");
}

#[test]
fn the_space_before_the_first_word_is_stripped_only_at_the_start_of_a_text() {
    let tokenizer = load(&tokenizers::sentence_piece());
    let ids = tokenizer.encode("he h", false).unwrap();
    let text = |first_space| {
        let mut detokenizer =
            Detokenizer::new(Arc::clone(&tokenizer), SpecialTokens::Hide, first_space);
        ids.iter()
            .map(|id| detokenizer.push(*id).to_owned())
            .collect::<String>()
    };
    assert_eq!(text(FirstSpace::Strip), "he h");
    assert_eq!(text(FirstSpace::Keep), " he h");
}

#[test]
fn special_tokens_are_hidden_shown_or_chosen() {
    let tokenizer = load(&tokenizers::byte_level());
    let ids = tokenizer
        .encode("<bos>a[TOOL_CALLS]b<think>c<|im_end|>", false)
        .unwrap();
    let marker = tokenizer.token_id("[TOOL_CALLS]").unwrap();
    let text = |special_tokens| {
        let mut detokenizer =
            Detokenizer::new(Arc::clone(&tokenizer), special_tokens, FirstSpace::Strip);
        ids.iter()
            .map(|id| detokenizer.push(*id).to_owned())
            .collect::<String>()
    };
    assert_eq!(text(SpecialTokens::Hide), "ab<think>c");
    assert_eq!(
        text(SpecialTokens::Only(vec![marker])),
        "a[TOOL_CALLS]b<think>c"
    );
    assert_eq!(
        text(SpecialTokens::Show),
        "<bos>a[TOOL_CALLS]b<think>c<|im_end|>"
    );
}
