//! Renders conversations with chat templates: JSON in, JSON out, for comparison with other
//! implementations.

use std::{
    io::{self, BufWriter, Write as _},
    time::Instant,
};

use macmlx_chat::ChatTemplate;
use macmlx_inference::{ChatPrompt, InferenceError, ReasoningOptions};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Standard input: each template renders each prompt.
#[derive(Deserialize)]
struct Input {
    templates: Vec<Template>,
    bos_token: String,
    eos_token: String,
    prompts: Vec<Prompt>,
}

#[derive(Deserialize)]
struct Template {
    name: String,
    text: String,
}

#[derive(Deserialize)]
struct Prompt {
    name: String,
    chat: ChatPrompt,
    reasoning: ReasoningOptions,
}

/// Standard output: a line for each template.
#[derive(Serialize)]
struct Output<'a> {
    template: &'a str,
    error: Option<InferenceError>,
    probe_ms: u128,
    prompts: Vec<Rendered<'a>>,
}

#[derive(Serialize)]
struct Rendered<'a> {
    prompt: &'a str,
    /// What the template was given.
    variables: Map<String, Value>,
    text: Option<String>,
    error: Option<InferenceError>,
    render_us: u128,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let input: Input = serde_json::from_reader(io::stdin().lock())?;
    let mut out = BufWriter::new(io::stdout().lock());
    for template in &input.templates {
        let tokens = vec![
            ("bos_token", input.bos_token.clone()),
            ("eos_token", input.eos_token.clone()),
        ];
        let start = Instant::now();
        let compiled = ChatTemplate::compile(&template.name, template.text.clone(), None, tokens);
        let probe_ms = start.elapsed().as_millis();
        let (error, prompts) = match compiled {
            Ok(compiled) => (None, render(&compiled, &input.prompts)),
            Err(error) => (Some(error), Vec::new()),
        };
        let output = Output {
            template: &template.name,
            error,
            probe_ms,
            prompts,
        };
        serde_json::to_writer(&mut out, &output)?;
        out.write_all(b"\n")?;
    }
    out.flush()?;
    Ok(())
}

fn render<'a>(template: &ChatTemplate, prompts: &'a [Prompt]) -> Vec<Rendered<'a>> {
    let rendered = prompts.iter().map(|prompt| {
        let variables = template.variables(&prompt.chat, &prompt.reasoning);
        let start = Instant::now();
        let text = template.render(&prompt.chat, &prompt.reasoning);
        let render_us = start.elapsed().as_micros();
        let (text, error) = match text {
            Ok(text) => (Some(text), None),
            Err(error) => (None, Some(error)),
        };
        Rendered {
            prompt: &prompt.name,
            variables: variables.unwrap_or_default(),
            text,
            error,
            render_us,
        }
    });
    rendered.collect()
}
