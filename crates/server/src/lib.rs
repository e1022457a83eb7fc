//! The dialects over HTTP: one generic handler for all generating endpoints, and what stands around
//! it (keys, hosts, origins, limits, listener, shutdown).
//!
//! ```no_run
//! # use std::{sync::Arc, time::Duration};
//! # use macmlx_inference::{Backend, Catalog, ModelFiles};
//! # async fn run(backend: Arc<dyn Backend>, catalog: Arc<dyn Catalog>, files: Arc<dyn ModelFiles>) -> Result<(), Box<dyn std::error::Error>> {
//! use macmlx_server::{IfBusy, Options, bind, router, serve};
//!
//! let options = Options::default();
//! let listener = bind("127.0.0.1", 8000, IfBusy::NextFree, &options).await?;
//! let router = router(backend, catalog, files, axum::Router::new(), options);
//! serve(listener, router, std::future::pending(), Duration::from_secs(5)).await?;
//! # Ok(())
//! # }
//! ```

mod api;
mod choice;
mod closing;
mod connections;
mod content_encoding;
mod dialect;
mod door;
mod encode;
mod exchange;
mod generate;
mod guard;
mod listener;
mod live;
mod options;
mod replay;
mod responses;
mod route_path;
mod router;
mod routes;
mod running;
mod visitors;

pub use connections::ConnectionLimits;
pub use door::InProcess;
pub use listener::{BindError, IfBusy, Listener, bind, serve};
pub use options::{ApiKey, ApiKeySource, Options};
pub use router::router;
pub use visitors::Visitors;
