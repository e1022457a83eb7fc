//! What the starter model draws under the grammars of real schemas.

use std::{collections::BTreeMap, sync::Arc};

use futures::{StreamExt, stream};
use libtest_mimic::{Failed, Trial};
use macmlx_chat::Tokenizer;
use macmlx_inference::{
    Backend, FinishReason, GenerateRequest, GenerationEvent, InferenceError, Message, Prompt, Role,
};
use serde_json::Value;

use crate::{
    corpus::Schema,
    figures::{Figures, count},
    starter::{NAME, Starter, grammar},
};

/// Outputs that are drawn at a time.
const BATCH: usize = 32;

/// Schemas that are drawn from, evenly out of the corpus.
const SCHEMAS: usize = 480;

const MAX_TOKENS: u32 = 64;

/// How much likelier tokens are made that only close something. The starter model is small and
/// would go on for ever; what it draws is drawn all the same.
const CLOSING_BIAS: f32 = 6.0;

/// One trial of all, since outputs share batches.
pub(crate) fn trials(
    corpus: &Arc<Vec<Schema>>,
    starter: &Arc<Starter>,
    figures: &Arc<Figures>,
) -> Vec<Trial> {
    let (corpus, starter) = (Arc::clone(corpus), Arc::clone(starter));
    let figures = Arc::clone(figures);
    vec![Trial::test("sampled/real_schemas", move || {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(draw(&corpus, &starter, &figures))
    })]
}

async fn draw(corpus: &[Schema], starter: &Starter, figures: &Figures) -> Result<(), Failed> {
    let step = corpus.len().div_ceil(SCHEMAS).max(1);
    let drawn = corpus.iter().step_by(step).enumerate();
    let wrong: Vec<String> = stream::iter(drawn)
        .map(|(seed, schema)| one(schema, seed as u64, starter, figures))
        .buffer_unordered(BATCH)
        .filter_map(|outcome| async move { outcome.err() })
        .collect()
        .await;
    if wrong.is_empty() {
        return Ok(());
    }
    Err(wrong.join("\n").into())
}

async fn one(
    schema: &Schema,
    seed: u64,
    starter: &Starter,
    figures: &Figures,
) -> Result<(), String> {
    let told = |what: String| format!("{}: {what}", schema.name);
    let ask = format!("Write an example of {} in JSON.", schema.name);
    let prompt = macmlx_inference::ChatPrompt {
        messages: vec![Message::text(Role::User, ask)],
        ..Default::default()
    };
    let mut request = GenerateRequest::new(NAME, Prompt::Chat(prompt));
    request.sampling.temperature = Some(1.0);
    request.sampling.seed = Some(seed);
    request.stop.max_tokens = Some(MAX_TOKENS);
    request.sampling.logit_bias = closing(starter.chat.tokenizer());
    request.grammar = Some(grammar(&schema.schema));
    let mut events = match starter
        .engine()
        .generate(starter.card.clone(), request)
        .await
    {
        Ok(events) => events,
        // Counted where it is compiled.
        Err(InferenceError::Unsupported { .. }) => return Ok(()),
        Err(error) => return Err(told(error.to_string())),
    };
    let (mut text, mut reason) = (String::new(), None);
    while let Some(event) = events.next().await {
        match event.map_err(|error| told(error.to_string()))? {
            GenerationEvent::Text { text: more, .. } => text += &more,
            GenerationEvent::Finished { reason: why, .. } => reason = Some(why),
            _ => {}
        }
    }
    let sampled = &figures.sampled;
    if reason != Some(FinishReason::Stop) {
        count(&sampled.unfinished);
        return Ok(());
    }
    match judge(&schema.schema, &text) {
        Ok(()) => {
            count(&sampled.valid);
            Ok(())
        }
        Err(error) => {
            count(&sampled.invalid);
            Err(told(format!("{error}\n  {text}")))
        }
    }
}

fn judge(schema: &Value, text: &str) -> Result<(), String> {
    let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let validator = jsonschema::options()
        .should_validate_formats(true)
        .build(schema)
        .map_err(|error| format!("the schema is none: {error}"))?;
    validator
        .validate(&value)
        .map_err(|error| format!("{error} at `{}`", error.instance_path()))
}

/// A bias for every token of quotes and closing brackets.
fn closing(tokenizer: &Tokenizer) -> BTreeMap<u32, f32> {
    let is_closing = |bytes: &[u8]| !bytes.is_empty() && bytes.iter().all(|b| b"\"}]".contains(b));
    (0..tokenizer.vocab_size() as u32)
        .filter(|id| is_closing(tokenizer.token_bytes(*id)))
        .map(|id| (id, CLOSING_BIAS))
        .collect()
}
