//! Turns the tokens of one choice into its events.

use std::{
    collections::VecDeque,
    hash::{BuildHasher, RandomState},
};

use macmlx_inference::{FinishReason, GenerationEvent, TokenLogprob, ToolCallPart};

use macmlx_output::{CallPart, Piece};

use crate::{OutputPiece, OutputStream};

/// The output of one choice: takes its tokens from any generator and says what they mean.
#[derive(Debug)]
pub struct ChoiceOutput {
    choice: u32,
    stream: OutputStream,
    /// Log probabilities of tokens whose text has not come out; empty when none were asked for.
    pending: VecDeque<TokenLogprob>,
    reasoning_tokens: u32,
    /// Tokens pushed while the model was thinking.
    reasoning_spent: u32,
    /// Its block is being closed for it.
    is_closing_reasoning: bool,
}

impl ChoiceOutput {
    /// `choice` is the index that the events carry.
    pub fn new(choice: u32, stream: OutputStream) -> Self {
        Self {
            choice,
            stream,
            pending: VecDeque::new(),
            reasoning_tokens: 0,
            reasoning_spent: 0,
            is_closing_reasoning: false,
        }
    }

    /// Takes a token and gives `emit` what is certain now. `logprob` is the token's own and comes
    /// back with the text it belongs to. The token that ends a generation is not pushed.
    pub fn push(
        &mut self,
        token: u32,
        logprob: Option<TokenLogprob>,
        emit: impl FnMut(GenerationEvent),
    ) {
        self.pending.extend(logprob);
        self.reasoning_spent += u32::from(self.stream.in_reasoning());
        let pieces = self.stream.push(token);
        self.emit(pieces, emit);
    }

    /// Gives `emit` what was held back and [`GenerationEvent::Finished`]. `reason` is why no more
    /// tokens come.
    pub fn finish(&mut self, reason: FinishReason, mut emit: impl FnMut(GenerationEvent)) {
        let finish = self.stream.finish(reason);
        self.emit(finish.pieces, &mut emit);
        emit(GenerationEvent::Finished {
            choice: self.choice,
            reason: finish.reason,
            stop_sequence: finish.stop_sequence,
        });
    }

    /// A stop sequence has matched or the only tool call has been made: the choice is to be
    /// finished with [`FinishReason::Stop`].
    pub fn is_stopped(&self) -> bool {
        self.stream.is_stopped()
    }

    /// Whether the model is thinking.
    pub fn in_reasoning(&self) -> bool {
        self.stream.in_reasoning()
    }

    /// Text whose tokens are to take the place of the next ones, for the model to stop thinking:
    /// given once when it has thought for as many tokens as it may, and again for any block that it
    /// opens later.
    pub fn close_reasoning(&mut self, budget_tokens: u32) -> Option<&'static str> {
        if !self.stream.in_reasoning() {
            self.is_closing_reasoning = false;
            return None;
        }
        if self.is_closing_reasoning || self.reasoning_spent < budget_tokens {
            return None;
        }
        self.is_closing_reasoning = true;
        self.stream.reasoning_close()
    }

    /// Text that makes the model stop thinking. `None`: its output has no reasoning blocks.
    pub fn reasoning_close(&self) -> Option<&'static str> {
        self.stream.reasoning_close()
    }

    /// Tokens of this choice that were reasoning, as far as their text has come out.
    pub fn reasoning_tokens(&self) -> u32 {
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
                Piece::ToolCall(CallPart::Arguments(text))
                    if text.is_empty() && tokens.is_empty() => {}
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
                Piece::ToolCall(part) => emit(GenerationEvent::ToolCall {
                    choice,
                    part: match part {
                        CallPart::Start { name } => ToolCallPart::Start {
                            id: call_id(),
                            name,
                        },
                        CallPart::Arguments(text) => ToolCallPart::Arguments(text),
                        CallPart::End => ToolCallPart::End,
                    },
                    tokens,
                }),
            }
        }
    }
}

/// The standard library keys each hasher from the system's entropy.
fn call_id() -> String {
    format!("call_{:016x}", RandomState::new().hash_one(0_u8))
}
