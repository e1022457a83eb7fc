//! A request that has been checked and tokenized, on its way to the MLX thread.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use macmlx_chat::{Constraint, OutputStream};
use macmlx_inference::{
    GenerateRequest, GenerationEvent, InferenceError, Logprobs, Prompt, StopConditions,
};
use tokio::sync::{mpsc, oneshot};

use crate::{
    pool::{ActiveTicket, WaitTicket},
    profile::Profile,
    sampling::{Parameters, random_seed},
};

/// Where a request's events go.
pub(crate) type EventSender = mpsc::UnboundedSender<Result<GenerationEvent, InferenceError>>;

/// The channel on which a caller learns, once, whether the model could be loaded.
pub(crate) type Ready = oneshot::Sender<Result<(), InferenceError>>;

/// A checked request.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) profile: Arc<Profile>,
    pub(crate) prompt: Vec<u32>,
    /// One a choice, with the choice's own seed.
    pub(crate) parameters: Vec<Parameters>,
    /// One a choice.
    pub(crate) outputs: Vec<OutputStream>,
    /// What each choice's output is held to. `None`: to nothing.
    pub(crate) constraint: Option<Constraint>,
    pub(crate) end: EndConditions,
    pub(crate) logprobs: Option<Logprobs>,
    /// Reasoning tokens after which the block is closed, and the tokens that close it.
    pub(crate) reasoning_budget: Option<u32>,
}

/// A draft with its way back.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) draft: Draft,
    pub(crate) events: EventSender,
    pub(crate) ready: Option<Ready>,
    pub(crate) submitted: Instant,
    /// What loading the model took; zero where it was there. The rest of the wait is for a place in
    /// the batch.
    pub(crate) load: Duration,
    pub(crate) waiting: WaitTicket,
    pub(crate) active: ActiveTicket,
}

/// When a choice ends, as far as tokens say it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EndConditions {
    /// End-of-sequence and stop tokens, sorted.
    pub(crate) tokens: Arc<[u32]>,
    pub(crate) min_tokens: u32,
    /// Tokens that may be generated: `max_tokens` or what the context leaves.
    pub(crate) max_tokens: u32,
}

impl Draft {
    /// Checks and tokenizes; slow for long prompts.
    pub(crate) fn prepare_blocking(
        profile: Arc<Profile>,
        request: &GenerateRequest,
    ) -> Result<Self, InferenceError> {
        if request.choices == 0 {
            return Err(invalid("n", "`n` must be at least 1"));
        }
        if let Prompt::Tokens(tokens) = &request.prompt {
            check_tokens("prompt", tokens.iter().copied(), profile.vocab_size)?;
        }
        check_tokens(
            "logit_bias",
            request.sampling.logit_bias.keys().copied(),
            profile.vocab_size,
        )?;
        check_tokens(
            "stop_token_ids",
            request.stop.token_ids.iter().copied(),
            profile.vocab_size,
        )?;
        let mut rendered = profile.chat.prompt(&request.prompt, &request.reasoning)?;
        let limit = profile.context_length;
        if let Some(most) = request.prompt_limit {
            let most = match most {
                u32::MAX => room_for_prompt(limit, &request.stop),
                most => most,
            };
            keep_last(&mut rendered.tokens, most);
        }
        let prompt_tokens = rendered.tokens.len() as u32;
        if prompt_tokens == 0 {
            return Err(invalid("prompt", "the prompt is empty"));
        }
        if prompt_tokens > limit {
            return Err(InferenceError::ContextLength {
                prompt_tokens,
                limit,
            });
        }
        let eos = profile.chat.tokenizer().eos_token_ids();
        let end = EndConditions::new(
            &request.stop,
            &[eos, &rendered.end_tokens].concat(),
            limit - prompt_tokens,
        );
        let constraint = profile
            .chat
            .constraint(&rendered, request.grammar.as_ref())?;
        let seed = request.sampling.seed.unwrap_or_else(random_seed);
        let choices = 0..u64::from(request.choices);
        Ok(Self {
            parameters: choices
                .clone()
                .map(|choice| {
                    Parameters::resolve(
                        &request.sampling,
                        &profile.defaults,
                        seed.wrapping_add(choice),
                    )
                })
                .collect(),
            outputs: choices
                .map(|_| {
                    let answer = request.grammar.as_ref();
                    profile.chat.output(&rendered, &request.stop, answer)
                })
                .collect(),
            prompt: rendered.tokens,
            constraint,
            end,
            logprobs: request.logprobs,
            reasoning_budget: request.reasoning.budget_tokens,
            profile,
        })
    }
}

/// Tokens of a prompt that leave room for the answer that is asked for.
fn room_for_prompt(context_length: u32, stop: &StopConditions) -> u32 {
    let answer = stop.max_tokens.unwrap_or(1).max(1);
    context_length.saturating_sub(answer).max(1)
}

fn keep_last(tokens: &mut Vec<u32>, most: u32) {
    let cut = tokens.len().saturating_sub(most as usize);
    tokens.drain(..cut);
}

impl EndConditions {
    fn new(stop: &StopConditions, eos: &[u32], room: u32) -> Self {
        let eos = if stop.ignore_eos { &[] } else { eos };
        let mut tokens = [eos, &stop.token_ids].concat();
        tokens.sort_unstable();
        tokens.dedup();
        Self {
            tokens: tokens.into(),
            min_tokens: stop.min_tokens,
            max_tokens: stop.max_tokens.map_or(room, |max| max.min(room)),
        }
    }
}

pub(crate) fn check_tokens(
    param: &str,
    mut tokens: impl Iterator<Item = u32>,
    vocab_size: u32,
) -> Result<(), InferenceError> {
    match tokens.find(|&token| token >= vocab_size) {
        None => Ok(()),
        Some(token) => Err(invalid(
            param,
            &format!(
                "`{param}` has token {token}, but the model's vocabulary ends at {}",
                vocab_size - 1
            ),
        )),
    }
}

pub(crate) fn invalid(param: &str, message: &str) -> InferenceError {
    InferenceError::InvalidRequest {
        param: Some(param.into()),
        message: message.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn end_conditions() {
        let mut stop = StopConditions {
            token_ids: vec![9, 2],
            ..StopConditions::default()
        };
        let end = EndConditions::new(&stop, &[2, 5], 100);
        assert_eq!((&*end.tokens, end.max_tokens), (&[2, 5, 9][..], 100));
        stop.ignore_eos = true;
        stop.max_tokens = Some(7);
        let end = EndConditions::new(&stop, &[2, 5], 100);
        assert_eq!((&*end.tokens, end.max_tokens), (&[2, 9][..], 7));
        stop.max_tokens = Some(700);
        assert_eq!(EndConditions::new(&stop, &[], 100).max_tokens, 100);
    }

    #[test]
    fn the_end_of_a_prompt_is_kept_and_leaves_room_for_the_answer() {
        for (most, expected) in [(2, &[3, 4][..]), (4, &[1, 2, 3, 4]), (9, &[1, 2, 3, 4])] {
            let mut tokens = vec![1, 2, 3, 4];
            keep_last(&mut tokens, most);
            assert_eq!(tokens, expected);
        }
        for (max_tokens, expected) in [
            (None, 99),
            (Some(0), 99),
            (Some(30), 70),
            (Some(100), 1),
            (Some(u32::MAX), 1),
        ] {
            let stop = StopConditions {
                max_tokens,
                ..StopConditions::default()
            };
            assert_eq!(room_for_prompt(100, &stop), expected, "{max_tokens:?}");
        }
    }

    #[test]
    fn tokens_beyond_the_vocabulary_are_named() {
        assert_eq!(check_tokens("logit_bias", [0, 9].into_iter(), 10), Ok(()));
        let error = check_tokens("logit_bias", [3, 10].into_iter(), 10).unwrap_err();
        assert!(error.to_string().contains("token 10"), "{error}");
    }
}
