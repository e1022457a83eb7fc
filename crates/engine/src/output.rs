//! From the tokens of one choice to its events.

use std::collections::VecDeque;

use macmlx_chat::{OutputPiece, OutputStream, Piece, Tokenizer};
use macmlx_inference::{
    FinishReason, GenerationEvent, LogprobCandidate, TokenLogprob, ToolCallPart,
};

use crate::sampling::{LogprobRow, random_seed};

/// Output of one choice.
#[derive(Debug)]
pub(crate) struct ChoiceOutput {
    choice: u32,
    stream: OutputStream,
    /// Log probabilities of tokens whose text has not come out; empty when none were asked for.
    pending: VecDeque<TokenLogprob>,
    /// Tokens of this choice that were reasoning.
    reasoning_tokens: u32,
}

impl ChoiceOutput {
    pub(crate) fn new(choice: u32, stream: OutputStream) -> Self {
        Self {
            choice,
            stream,
            pending: VecDeque::new(),
            reasoning_tokens: 0,
        }
    }

    /// Takes a token and gives `emit` what is certain now.
    pub(crate) fn push(
        &mut self,
        token: u32,
        logprob: Option<TokenLogprob>,
        emit: impl FnMut(GenerationEvent),
    ) {
        self.pending.extend(logprob);
        let pieces = self.stream.push(token);
        self.emit(pieces, emit);
    }

    /// Gives `emit` what was held back and the end.
    pub(crate) fn finish(&mut self, reason: FinishReason, mut emit: impl FnMut(GenerationEvent)) {
        let finish = self.stream.finish(reason);
        self.emit(finish.pieces, &mut emit);
        emit(GenerationEvent::Finished {
            choice: self.choice,
            reason: finish.reason,
            stop_sequence: finish.stop_sequence,
        });
    }

    /// A stop sequence has matched.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stream.stop_sequence().is_some()
    }

    pub(crate) fn in_reasoning(&self) -> bool {
        self.stream.in_reasoning()
    }

    /// Text that makes the model stop thinking.
    pub(crate) fn reasoning_close(&self) -> Option<&'static str> {
        self.stream.reasoning_close()
    }

    pub(crate) fn reasoning_tokens(&self) -> u32 {
        self.reasoning_tokens
    }

    fn emit(&mut self, pieces: Vec<OutputPiece>, mut emit: impl FnMut(GenerationEvent)) {
        for OutputPiece { piece, tokens } in pieces {
            if matches!(piece, Piece::Reasoning(_)) {
                self.reasoning_tokens += tokens as u32;
            }
            let choice = self.choice;
            let tokens: Vec<TokenLogprob> = self
                .pending
                .drain(..tokens.min(self.pending.len()))
                .collect();
            match piece {
                Piece::Text(text) if text.is_empty() && tokens.is_empty() => {}
                Piece::Reasoning(text) if text.is_empty() && tokens.is_empty() => {}
                Piece::Text(text) => emit(GenerationEvent::Text {
                    choice,
                    text,
                    tokens,
                }),
                Piece::Reasoning(text) => emit(GenerationEvent::Reasoning {
                    choice,
                    text,
                    tokens,
                }),
                Piece::ToolCall { name, arguments } => {
                    let start = ToolCallPart::Start {
                        id: call_id(),
                        name,
                    };
                    let parts = [start, ToolCallPart::Arguments(arguments), ToolCallPart::End];
                    let mut tokens = Some(tokens);
                    for part in parts {
                        emit(GenerationEvent::ToolCall {
                            choice,
                            part,
                            tokens: tokens.take().unwrap_or_default(),
                        });
                    }
                }
            }
        }
    }
}

fn call_id() -> String {
    format!("call_{:016x}", random_seed())
}

/// A token's log probabilities with the tokens' bytes. Without a row the token was not drawn but
/// put there.
pub(crate) fn token_logprob(
    tokenizer: &Tokenizer,
    token: u32,
    row: Option<&LogprobRow>,
    top: u8,
) -> TokenLogprob {
    TokenLogprob {
        id: token,
        bytes: tokenizer.token_bytes(token).to_vec(),
        logprob: row.map(|row| row.chosen),
        top: row
            .into_iter()
            .flat_map(|row| row.top.iter().take(usize::from(top)))
            .map(|&(id, logprob)| LogprobCandidate {
                id,
                bytes: tokenizer.token_bytes(id).to_vec(),
                logprob,
            })
            .collect(),
    }
}
