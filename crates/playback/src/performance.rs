//! One request while its answer is played: a token of each choice at a time.

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

use futures::{Stream, stream};
use macmlx_chat::{ChoiceOutput, Rendered, Tokenizer};
use macmlx_inference::{
    EventStream, FinishReason, GenerateRequest, GenerationEvent, InferenceError, LogprobCandidate,
    Logprobs, Timings, TokenLogprob, Usage,
};

use crate::{
    models::{PlayedModel, Running},
    script::{Say, Turn},
};

/// Characters of the prompt's end from which on an answer that begins with them repeats them.
const OVERLAP: usize = 4;

/// One answer as a stream of events, played while it is read.
pub(crate) struct Performance {
    model: Arc<PlayedModel>,
    prompt: Vec<u32>,
    cached_tokens: u32,
    parts: Vec<Part>,
    logprobs: Option<Logprobs>,
    end_tokens: Vec<u32>,
    max_tokens: usize,
    reasoning_budget: Option<u32>,
    pace: Pace,
    usage: Usage,
    played: u32,
    admitted: Instant,
    first_token: Option<Instant>,
    timings: Timings,
    /// Events to send before anything else happens.
    pending: VecDeque<Result<GenerationEvent, InferenceError>>,
    state: State,
    /// A function that gets the tokens that a prefix cache would hold in the end.
    remember: Box<dyn Fn(Vec<u32>) + Send>,
    _running: Running,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Prefill,
    Decode,
    Over,
}

/// How fast it goes and whether it breaks off.
#[derive(Debug, Clone, Copy)]
struct Pace {
    prefill: Duration,
    between_chunks: Option<Duration>,
    chunk_tokens: usize,
    fail_after: Option<u32>,
}

/// One choice.
struct Part {
    output: ChoiceOutput,
    /// Tokens that have not been played yet.
    tokens: VecDeque<u32>,
    /// Played.
    history: Vec<u32>,
    is_over: bool,
}

impl Performance {
    pub(crate) fn new(
        model: Arc<PlayedModel>,
        rendered: Rendered,
        request: &GenerateRequest,
        (turn, say): (&Turn, &Say),
        (context, cached_tokens): (u32, u32),
        running: Running,
        remember: Box<dyn Fn(Vec<u32>) + Send>,
    ) -> Result<Self, InferenceError> {
        let tokenizer = model.chat.tokenizer();
        let parts = (0..request.choices)
            .map(|choice| {
                let text = unsaid(&rendered.text, say.of(choice));
                let answer = request.grammar.as_ref();
                Ok(Part {
                    output: ChoiceOutput::new(
                        choice,
                        model.chat.output(&rendered, &request.stop, answer),
                    ),
                    tokens: tokenizer.encode(text, false)?.into(),
                    history: Vec::new(),
                    is_over: false,
                })
            })
            .collect::<Result<Vec<_>, InferenceError>>()?;
        let mut end_tokens = request.stop.token_ids.clone();
        if !request.stop.ignore_eos {
            end_tokens.extend(tokenizer.eos_token_ids());
        }
        let room = context.saturating_sub(rendered.tokens.len() as u32);
        let chunk_tokens = turn.chunk_tokens.max(1);
        Ok(Self {
            cached_tokens,
            parts,
            logprobs: request.logprobs,
            end_tokens,
            max_tokens: request.stop.max_tokens.map_or(room, |max| max.min(room)) as usize,
            reasoning_budget: request.reasoning.budget_tokens,
            pace: Pace {
                prefill: Duration::from_secs_f64(turn.prefill_seconds),
                between_chunks: turn
                    .tokens_per_second
                    .map(|rate| Duration::from_secs_f64(chunk_tokens as f64 / rate)),
                chunk_tokens,
                fail_after: turn.fail_after,
            },
            usage: Usage {
                prompt_tokens: rendered.tokens.len() as u32,
                cached_tokens,
                ..Usage::default()
            },
            played: 0,
            admitted: Instant::now(),
            first_token: None,
            timings: Timings::default(),
            pending: VecDeque::new(),
            state: State::Prefill,
            prompt: rendered.tokens,
            model,
            remember,
            _running: running,
        })
    }

    /// The events, played while they are read.
    pub(crate) fn events(mut self) -> EventStream {
        self.send(GenerationEvent::Started {
            model: self.model.card.id.clone(),
            prompt_tokens: self.prompt.len() as u32,
            cached_tokens: self.cached_tokens,
        });
        Box::pin(self.stream())
    }

    fn stream(self) -> impl Stream<Item = Result<GenerationEvent, InferenceError>> + Send {
        stream::unfold(self, |mut this| async move {
            loop {
                if let Some(event) = this.pending.pop_front() {
                    return Some((event, this));
                }
                match this.state {
                    State::Over => return None,
                    State::Prefill => {
                        tokio::time::sleep(this.pace.prefill).await;
                        this.prefill();
                    }
                    State::Decode => {
                        match this.pace.between_chunks {
                            Some(pause) => tokio::time::sleep(pause).await,
                            None => tokio::task::yield_now().await,
                        }
                        this.play_chunk();
                    }
                }
            }
        })
    }

    fn send(&mut self, event: GenerationEvent) {
        self.pending.push_back(Ok(event));
    }

    fn prefill(&mut self) {
        self.state = State::Decode;
        let total = self.prompt.len() as u32;
        self.send(GenerationEvent::Prefill {
            processed: total,
            total,
        });
        if let Some(logprobs) = self.logprobs.filter(|logprobs| logprobs.prompt) {
            let tokenizer = self.model.chat.tokenizer();
            let mut tokens: Vec<TokenLogprob> = self
                .prompt
                .iter()
                .map(|&token| odds(tokenizer, token, logprobs.top))
                .collect();
            if let Some(first) = tokens.first_mut() {
                first.logprob = None;
                first.top.clear();
            }
            self.send(GenerationEvent::PromptLogprobs { tokens });
        }
        for index in 0..self.parts.len() {
            if self.max_tokens == 0 {
                self.finish(index, FinishReason::Length);
            } else if let Err(error) = self.cut_reasoning(index) {
                return self.fail(error);
            }
        }
    }

    /// Plays the next tokens of every choice.
    fn play_chunk(&mut self) {
        for _ in 0..self.pace.chunk_tokens {
            for index in 0..self.parts.len() {
                if self
                    .pace
                    .fail_after
                    .is_some_and(|after| self.played >= after)
                {
                    return self.fail(InferenceError::Engine {
                        message: "the script breaks off here".into(),
                    });
                }
                if !self.parts[index].is_over {
                    self.play_token(index);
                }
                if self.state == State::Over {
                    return;
                }
            }
        }
    }

    fn play_token(&mut self, index: usize) {
        self.count_token();
        // The end of the script is where the model would have written an end token.
        let token = self.parts[index].tokens.pop_front();
        let Some(token) = token.filter(|token| !self.end_tokens.contains(token)) else {
            return self.finish(index, FinishReason::Stop);
        };
        let logprob = self
            .logprobs
            .map(|logprobs| odds(self.model.chat.tokenizer(), token, logprobs.top));
        let part = &mut self.parts[index];
        part.history.push(token);
        let pending = &mut self.pending;
        part.output
            .push(token, logprob, |event| pending.push_back(Ok(event)));
        if part.output.is_stopped() {
            self.finish(index, FinishReason::Stop);
        } else if part.history.len() >= self.max_tokens {
            self.finish(index, FinishReason::Length);
        } else if let Err(error) = self.cut_reasoning(index) {
            self.fail(error);
        }
    }

    fn count_token(&mut self) {
        self.played += 1;
        self.usage.completion_tokens += 1;
        let now = Instant::now();
        match self.first_token {
            None => {
                self.timings.prefill = now - self.admitted;
                self.first_token = Some(now);
            }
            Some(first) => self.timings.decode = now - first,
        }
    }

    /// Closes the reasoning block for the model at the budget; the model then goes on to its
    /// answer.
    fn cut_reasoning(&mut self, index: usize) -> Result<(), InferenceError> {
        let part = &mut self.parts[index];
        let close = self
            .reasoning_budget
            .and_then(|budget| part.output.close_reasoning(budget));
        let Some(close) = close else {
            return Ok(());
        };
        let tokenizer = self.model.chat.tokenizer();
        let rest: Vec<u32> = part.tokens.drain(..).collect();
        let rest = tokenizer.detokenize(&rest);
        let answer = rest.split_once(close).map_or("", |(_, answer)| answer);
        part.tokens = tokenizer.encode(&format!("{close}{answer}"), false)?.into();
        Ok(())
    }

    fn finish(&mut self, index: usize, reason: FinishReason) {
        let part = &mut self.parts[index];
        part.is_over = true;
        let pending = &mut self.pending;
        part.output
            .finish(reason, |event| pending.push_back(Ok(event)));
        self.usage.reasoning_tokens += part.output.reasoning_tokens();
        let history = [&self.prompt[..], &part.history].concat();
        (self.remember)(history);
        if self.parts.iter().all(|part| part.is_over) {
            if self.first_token.is_none() {
                self.timings.prefill = self.admitted.elapsed();
            }
            self.state = State::Over;
            self.send(GenerationEvent::Completed {
                usage: self.usage,
                timings: self.timings,
            });
        }
    }

    fn fail(&mut self, error: InferenceError) {
        self.state = State::Over;
        self.pending.push_back(Err(error));
    }
}

/// The answer without what the prompt has already begun, such as an opened reasoning block.
fn unsaid<'a>(prompt: &str, answer: &'a str) -> &'a str {
    let overlap = answer
        .char_indices()
        .map(|(at, char)| at + char.len_utf8())
        .filter(|&end| end >= OVERLAP && prompt.ends_with(&answer[..end]))
        .max();
    &answer[overlap.unwrap_or(0)..]
}

/// The one distribution there is here: half for the token that is played, then half of what is
/// left for each of the tokens after it in the vocabulary.
fn odds(tokenizer: &Tokenizer, token: u32, top: u8) -> TokenLogprob {
    let size = tokenizer.vocab_size().max(1) as u32;
    let candidate = |place: u32| {
        let id = (token + place) % size;
        LogprobCandidate {
            id,
            bytes: tokenizer.token_bytes(id).to_vec(),
            logprob: -((place + 1) as f32) * std::f32::consts::LN_2,
        }
    };
    let LogprobCandidate { id, bytes, logprob } = candidate(0);
    TokenLogprob {
        id,
        bytes,
        logprob: Some(logprob),
        top: (0..u32::from(top)).map(candidate).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_prompt_began_is_not_said_again() {
        for (prompt, answer, said) in [
            (
                "user\nassistant\n<think>\n",
                "<think>\nhm</think>",
                "hm</think>",
            ),
            ("assistant\n", "<think>\nhm</think>", "<think>\nhm</think>"),
            ("The answer is", "The answer is 42", " 42"),
            // A letter in common is chance.
            ("banana", "and so on", "and so on"),
            ("Grüße", "Grüße!", "!"),
            ("", "", ""),
        ] {
            assert_eq!(unsaid(prompt, answer), said);
        }
    }
}
