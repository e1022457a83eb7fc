//! What was noted while the application ran.

use std::sync::Arc;

use axum::{Json, extract::State, http::StatusCode};
use macmlx_store::logs::{Category, Entry, Level, Logs, Page, Query};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{Problem, body::Asked, reply::ErrorBody};

/// Number of entries that are returned when the query gives none.
const LIMIT: usize = 200;
const MAX_LIMIT: usize = 1_000;

/// `/x/logs`.
pub fn routes() -> OpenApiRouter<Arc<Logs>> {
    OpenApiRouter::new().routes(routes!(logs, clear_logs))
}

/// What is looked for; everything without it.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct LogQuery {
    /// This and what matters more.
    #[param(inline)]
    level: Option<Level>,
    #[param(inline)]
    category: Option<Category>,
    /// Text in the message or a field.
    search: Option<String>,
    /// Returns only entries with a smaller id.
    before: Option<u64>,
    /// 200 unless said, 1000 at most.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
}

/// Entries, oldest first.
#[derive(Debug, Serialize, ToSchema)]
struct LogPage {
    entries: Vec<Entry>,
    /// True if there are older entries.
    has_more: bool,
}

/// Read the log: the newest entries that fit.
#[utoipa::path(
    get,
    path = "/x/logs",
    params(LogQuery),
    responses((status = 200, body = LogPage), (status = 400, body = ErrorBody))
)]
async fn logs(
    State(logs): State<Arc<Logs>>,
    Asked(asked): Asked<LogQuery>,
) -> Result<Json<LogPage>, Problem> {
    let limit = asked.limit.unwrap_or(LIMIT);
    if !(1..=MAX_LIMIT).contains(&limit) {
        let message = format!("`limit` is from 1 to {MAX_LIMIT}");
        return Err(Problem::invalid_param("limit", message));
    }
    let Page { entries, has_more } = logs.find(&Query {
        level: asked.level,
        category: asked.category,
        search: asked.search,
        before: asked.before,
        limit,
    });
    let entries = entries.into_iter().map(Arc::unwrap_or_clone).collect();
    Ok(Json(LogPage { entries, has_more }))
}

/// Forget the log, also on disk.
#[utoipa::path(delete, path = "/x/logs", responses((status = 204)))]
async fn clear_logs(State(logs): State<Arc<Logs>>) -> Result<StatusCode, Problem> {
    tokio::task::spawn_blocking(move || logs.clear())
        .await?
        .map_err(|error| Problem::failed("logs_failed", format!("cannot remove logs: {error}")))?;
    Ok(StatusCode::NO_CONTENT)
}
