//! `/api/v1/chat`, whose conversations are kept here.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    response::Response,
};
use macmlx_inference::{
    GenerateRequest, InferenceError, ModelTask, Prompt, TokenizeInput, TokenizeRequest,
};
use macmlx_protocol::{Endpoint, Error, Translation, lm_studio::chat::Chat};

use crate::{
    choice::choose,
    closing::Closing,
    exchange::{receive, respond},
    generate::{context, run},
    responses::{Remembering, messages},
    router::App,
};

pub(crate) async fn go_on(State(app): State<Arc<App>>, request: Request) -> Response {
    match answer_chat(&app, request).await {
        Ok(response) => response,
        Err(error) => respond(Chat::DIALECT.error_reply(&error)),
    }
}

async fn answer_chat(app: &App, request: Request) -> Result<Response, Error> {
    let closing = Closing::of(request.extensions());
    let received = receive(request, app.options.body_limit_bytes).await?;
    let request = Chat::parse(received.body())?;
    drop(received);
    let past = match request.previous() {
        Some(id) => app.chats.turns(id).ok_or_else(|| request.not_kept())?,
        None => Vec::new(),
    };
    let wants_stream = Chat::wants_stream(&request);
    let keep_alive = Chat::keep_alive(&request);
    let wants_store = request.wants_store();
    let context_length = request.context_length();
    let Translation {
        mut requests,
        encoder,
    } = request.translate(messages(&past), &context())?;
    if let Some(limit) = context_length {
        for request in &mut requests {
            bound(app, request, limit).await?;
        }
    }
    let encoder = Remembering {
        encoder,
        chats: Arc::clone(&app.chats),
        past,
        wants_store,
    };
    let translation = Translation { requests, encoder };
    run(app, translation, keep_alive, wants_stream, closing).await
}

/// Lets prompt and answer have `limit` tokens together.
async fn bound(app: &App, request: &mut GenerateRequest, limit: u32) -> Result<(), Error> {
    let Prompt::Chat(prompt) = &request.prompt else {
        return Ok(());
    };
    let question = TokenizeRequest {
        model: request.model.clone(),
        input: TokenizeInput::Chat {
            prompt: prompt.clone(),
            reasoning: request.reasoning.clone(),
        },
    };
    let model = choose(&app.catalog, &request.model, ModelTask::Generate).await?;
    let prompt_tokens = app.backend.tokenize(model, question).await?.len() as u32;
    if prompt_tokens >= limit {
        return Err(InferenceError::ContextLength {
            prompt_tokens,
            limit,
        }
        .into());
    }
    let room = limit - prompt_tokens;
    let wanted = request.stop.max_tokens.unwrap_or(room);
    request.stop.max_tokens = Some(wanted.min(room));
    Ok(())
}
