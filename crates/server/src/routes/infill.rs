//! `/infill`, whose clients run one model and mostly name none.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    response::Response,
};
use macmlx_protocol::{Endpoint, Error, openai::infill::Infill};

use crate::{
    choice::choose_default,
    closing::Closing,
    exchange::{receive, respond},
    generate::{context, run},
    router::App,
};

pub(crate) async fn fill_in(State(app): State<Arc<App>>, request: Request) -> Response {
    match filled(&app, request).await {
        Ok(response) => response,
        Err(error) => respond(Infill::DIALECT.error_reply(&error)),
    }
}

async fn filled(app: &App, request: Request) -> Result<Response, Error> {
    let closing = Closing::of(request.extensions());
    let received = receive(request, app.options.body_limit_bytes).await?;
    let mut request = Infill::parse(received.body())?;
    drop(received);
    if !request.names_model() {
        request.name_model(&choose_default(&app.catalog).await?.id);
    }
    let wants_stream = Infill::wants_stream(&request);
    let keep_alive = Infill::keep_alive(&request);
    let translation = Infill::translate(request, context())?;
    run(app, translation, keep_alive, wants_stream, closing).await
}
