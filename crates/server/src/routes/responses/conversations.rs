//! `/v1/conversations`.

use std::sync::Arc;

use axum::{
    extract::{Path, Request, State},
    http::Uri,
    response::Response,
    routing::{get, post},
};
use macmlx_protocol::{
    Error,
    openai::responses::{
        conversations::{Conversation, Deleted, Request as Body},
        list::ItemList,
    },
};
use serde_json::Value;

use super::{describe_paging, page, reply};
use crate::{
    api::{Api, Doc},
    exchange::read_body,
    generate::context,
    router::App,
};

/// Routes, without `/v1`.
pub(super) fn routes() -> Api {
    Api::default()
        .route(
            "/conversations",
            post(create),
            [Doc::post("Begin a conversation")
                .body::<Body>()
                .reply::<Conversation>()],
        )
        .route(
            "/conversations/{id}",
            get(retrieve).post(update).delete(delete),
            [
                Doc::get("Describe a conversation").reply::<Conversation>(),
                Doc::post("Replace a conversation's metadata")
                    .body::<Body>()
                    .reply::<Conversation>(),
                Doc::delete("Forget a conversation").reply::<Deleted>(),
            ],
        )
        .route(
            "/conversations/{id}/items",
            get(items).post(add_items),
            [
                describe_paging(Doc::get("List a conversation's items")).reply::<ItemList>(),
                Doc::post("Add items to a conversation")
                    .body::<Body>()
                    .reply::<ItemList>(),
            ],
        )
        .route(
            "/conversations/{id}/items/{item}",
            get(item).delete(delete_item),
            [
                Doc::get("Read an item").reply::<Value>(),
                Doc::delete("Remove an item from a conversation").reply::<Conversation>(),
            ],
        )
}

async fn body(app: &App, request: Request) -> Result<Body, Error> {
    Body::parse(&read_body(request, app.options.body_limit_bytes).await?)
}

async fn create(State(app): State<Arc<App>>, request: Request) -> Response {
    reply(create_conversation(&app, request).await)
}

async fn create_conversation(app: &App, request: Request) -> Result<Conversation, Error> {
    let (conversation, items) = body(app, request).await?.create(&context())?;
    app.responses
        .create_conversation(conversation.clone(), items);
    Ok(conversation)
}

async fn retrieve(State(app): State<Arc<App>>, Path(id): Path<String>) -> Response {
    reply(app.responses.conversation(&id))
}

async fn update(State(app): State<Arc<App>>, Path(id): Path<String>, request: Request) -> Response {
    reply(update_metadata(&app, &id, request).await)
}

async fn update_metadata(app: &App, id: &str, request: Request) -> Result<Conversation, Error> {
    let metadata = body(app, request).await?.into_metadata()?;
    app.responses.set_metadata(id, metadata)
}

async fn delete(State(app): State<Arc<App>>, Path(id): Path<String>) -> Response {
    let deleted = app.responses.delete_conversation(&id);
    reply(deleted.map(|()| Deleted::conversation(id)))
}

async fn items(State(app): State<Arc<App>>, Path(id): Path<String>, uri: Uri) -> Response {
    reply(page(&uri).and_then(|page| app.responses.items(&id, &page)))
}

async fn add_items(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    request: Request,
) -> Response {
    reply(insert_items(&app, &id, request).await)
}

async fn insert_items(app: &App, id: &str, request: Request) -> Result<ItemList, Error> {
    let body = body(app, request).await?;
    app.responses
        .add_items(id, |earlier| body.into_items(earlier, &context()))
}

async fn item(State(app): State<Arc<App>>, Path((id, item)): Path<(String, String)>) -> Response {
    reply(app.responses.item(&id, &item))
}

async fn delete_item(
    State(app): State<Arc<App>>,
    Path((id, item)): Path<(String, String)>,
) -> Response {
    reply(app.responses.delete_item(&id, &item))
}
