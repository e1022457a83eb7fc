//! OpenAI's Responses API.

mod conversations;

use std::{collections::HashMap, sync::Arc};

use axum::{
    extract::{Path, Query, Request, State},
    http::Uri,
    response::Response,
    routing::{any, get, post},
};
use macmlx_inference::ModelTask;
use macmlx_protocol::{
    Dialect, Endpoint, Error, Translation,
    openai::responses::{
        self, Body, InputTokens, Responses,
        conversations::Deleted,
        list::{ItemList, Page},
    },
};
use serde::Serialize;
use serde_json::Value;

use crate::{
    api::{Api, Doc},
    choice::choose,
    closing::Closing,
    exchange::{answer, receive, respond},
    generate::{context, run},
    responses::Recording,
    router::{App, no_route},
};

/// Routes beside the endpoint itself, without `/v1`.
pub(crate) fn routes() -> Api {
    Api::default()
        .route(
            "/responses/input_tokens",
            post(count),
            [Doc::post("Count the tokens of a prompt")
                .body::<Body>()
                .reply::<InputTokens>()],
        )
        // Not an id: nothing is compacted here.
        .untold("/responses/compact", any(no_route))
        .route(
            "/responses/{id}",
            get(retrieve).delete(delete),
            [
                Doc::get("Read a kept response").reply::<responses::Response>(),
                Doc::delete("Forget a response").reply::<Deleted>(),
            ],
        )
        .route(
            "/responses/{id}/cancel",
            post(cancel),
            [Doc::post("Refused: no response runs in the background")],
        )
        .route(
            "/responses/{id}/input_items",
            get(input_items),
            [describe_paging(Doc::get("List what a response answered")).reply::<ItemList>()],
        )
        .merge(conversations::routes())
}

/// The query of a list.
fn describe_paging(doc: Doc) -> Doc {
    doc.query("limit", "Items in a page, 1 to 100.")
        .query("after", "The page begins after this item.")
        .query("order", "`asc` or `desc`.")
}

pub(super) async fn create(State(app): State<Arc<App>>, request: Request) -> Response {
    match answer_request(&app, request).await {
        Ok(response) => response,
        Err(error) => respond(Dialect::OpenAi.error_reply(&error)),
    }
}

async fn answer_request(app: &App, request: Request) -> Result<Response, Error> {
    let closing = Closing::of(request.extensions());
    let received = receive(request, app.options.body_limit_bytes).await?;
    let request = Responses::parse(received.body())?;
    drop(received);
    let wants_stream = request.wants_stream();
    let keep_alive = request.keep_alive();
    let lineage = app.responses.lineage(&request)?;
    let Translation {
        requests, encoder, ..
    } = request.translate(&lineage.past(), context())?;
    let encoder = Recording::new(encoder, Arc::clone(&app.responses), lineage);
    let translation = Translation { requests, encoder };
    run(app, translation, keep_alive, wants_stream, closing).await
}

/// How many tokens a request's prompt has.
async fn count(State(app): State<Arc<App>>, request: Request) -> Response {
    reply(count_tokens(&app, request).await)
}

async fn count_tokens(app: &App, request: Request) -> Result<InputTokens, Error> {
    let received = receive(request, app.options.body_limit_bytes).await?;
    let request = Responses::parse(received.body())?;
    let past = app.responses.lineage(&request)?.past();
    let request = request.count(&past)?;
    let model = choose(&app.catalog, &request.model, ModelTask::Generate).await?;
    let tokens = app.backend.tokenize(model, request).await?;
    Ok(InputTokens::new(tokens.len()))
}

async fn retrieve(State(app): State<Arc<App>>, Path(id): Path<String>, uri: Uri) -> Response {
    let found = query(&uri).and_then(|query| {
        if query.get("stream").is_some_and(|stream| stream == "true") {
            let reason = "events are not kept; the response is there as a whole";
            return Err(Error::unsupported("stream", reason));
        }
        app.responses.response(&id)
    });
    answer(Dialect::OpenAi, found)
}

async fn delete(State(app): State<Arc<App>>, Path(id): Path<String>) -> Response {
    let deleted = app.responses.delete_response(&id);
    reply(deleted.map(|()| Deleted::response(id)))
}

/// Refuses to cancel. Only a response that runs in the background can be cancelled, and none does:
/// a client that no longer wants a response hangs up.
async fn cancel(State(app): State<Arc<App>>, Path(id): Path<String>) -> Response {
    let refused = app.responses.response(&id).and_then(|_| {
        Err::<Value, _>(Error::Invalid {
            param: None,
            message: format!(
                "response `{id}` is complete; only responses made with `background` can be cancelled"
            ),
        })
    });
    answer(Dialect::OpenAi, refused)
}

async fn input_items(State(app): State<Arc<App>>, Path(id): Path<String>, uri: Uri) -> Response {
    reply(page(&uri).and_then(|page| app.responses.input_items(&id, &page)))
}

/// Reads from the query which page of a list is asked for.
fn page(uri: &Uri) -> Result<Page, Error> {
    let query = query(uri)?;
    Page::read(|field| query.get(field).cloned())
}

fn query(uri: &Uri) -> Result<HashMap<String, String>, Error> {
    match Query::try_from_uri(uri) {
        Ok(Query(query)) => Ok(query),
        Err(_) => Err(Error::Invalid {
            param: None,
            message: "the query string cannot be read".into(),
        }),
    }
}

fn reply(result: Result<impl Serialize, Error>) -> Response {
    let body = result.and_then(|body| {
        serde_json::to_value(body).map_err(|error| {
            tracing::error!(%error, "a reply is no JSON");
            Error::Internal
        })
    });
    answer(Dialect::OpenAi, body)
}
