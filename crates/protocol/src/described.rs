//! What the `OpenAPI` document says of a generating endpoint.

use utoipa::ToSchema;

use crate::Endpoint;

/// The wire types of an endpoint, for the document that is made from them.
pub trait Described: Endpoint {
    /// What it does, in a line.
    const SUMMARY: &'static str;

    /// What clients send.
    type Body: ToSchema;
    /// The answer as a whole.
    type Answer: ToSchema;
    /// What each frame of a streamed answer holds.
    type Event: ToSchema;
}
