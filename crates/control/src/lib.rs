//! The `/x` routes: what only the owner of a server sees and does.
//!
//! Every route needs the control token, from every client and every address. The host check that
//! guards all routes stands in front of these, too; what is checked here is the token and the
//! origin, and that bodies are JSON, which pages of other sites cannot send unasked.

mod access;
mod activity;
mod body;
pub mod chat;
pub mod conversations;
mod counted;
pub mod door;
pub mod downloads;
pub mod events;
pub mod hub;
pub mod keys;
pub mod logs;
mod machine;
pub mod mcp;
pub mod models;
pub mod parameters;
mod reply;
pub mod settings;
pub mod status;
mod throughput;

use std::sync::Arc;

use axum::{Json, Router, middleware, routing::get};
use utoipa::openapi::{Info, OpenApi, OpenApiBuilder};
use utoipa_axum::router::OpenApiRouter;

pub use activity::Activity;
pub use counted::Counted;
pub use machine::Machine;
pub use reply::Problem;
pub use throughput::Throughput;

/// Declares what control is made of: each area is a module with `routes()`, and the state they need.
macro_rules! areas {
    ($($area:ident: $state:ty),* $(,)?) => {
        /// What control acts on, area by area.
        #[derive(Clone)]
        pub struct Control {
            /// The secret that opens the routes.
            pub token: Arc<str>,
            $(pub $area: $state,)*
        }

        impl Control {
            fn routes(self) -> OpenApiRouter {
                OpenApiRouter::with_openapi(about())
                    $(.merge($area::routes().with_state(self.$area)))*
            }
        }

        /// What all control routes take and give.
        pub fn document() -> OpenApi {
            let mut document = about();
            $(document.merge($area::routes().into_openapi());)*
            document
        }
    };
}

areas! {
    status: Arc<status::StatusSources>,
    door: Arc<dyn door::Door>,
    events: Arc<events::Events>,
    models: Arc<models::Models>,
    hub: Arc<hub::HubSources>,
    downloads: macmlx_store::downloads::Downloads,
    settings: Arc<settings::SettingsSources>,
    keys: Arc<keys::Keys>,
    logs: Arc<macmlx_store::logs::Logs>,
    mcp: Arc<macmlx_mcp::Pool>,
    conversations: Arc<conversations::ConversationSources>,
    chat: Arc<chat::Chat>,
    parameters: Arc<parameters::ParameterSources>,
}

impl std::fmt::Debug for Control {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Control").finish_non_exhaustive()
    }
}

/// The routes, without a fallback, to be merged into the server's router.
pub fn router(control: Control) -> Router {
    let token = control.token.clone();
    guard(token, control.routes())
}

/// Some areas' routes behind the token, with their document.
pub fn guard(token: Arc<str>, routes: OpenApiRouter) -> Router {
    let (guarded, document) = routes.split_for_parts();
    guarded
        .route(
            "/x/openapi.json",
            get(move || std::future::ready(Json(document.clone()))),
        )
        .route_layer(middleware::from_fn_with_state(token, access::check))
}

fn about() -> OpenApi {
    OpenApiBuilder::new()
        .info(Info::new("macMLX control", env!("CARGO_PKG_VERSION")))
        .build()
}
