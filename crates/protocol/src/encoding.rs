//! The seam between one generic HTTP handler and every route that turns texts into numbers.

use macmlx_inference::{KeepAlive, Question};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{Body, Context, Dialect, Error, Vocabulary};

/// The body of a route whose answer is vectors or scores. Answers come whole, as there is nothing to
/// show before the end.
pub trait Encoding: ToSchema + Sized + Send + 'static {
    /// What the backend is asked: `EmbedRequest`, `RerankRequest`.
    type Question: Question;
    type Reply: Serialize + ToSchema;

    /// Whose shape errors have.
    const DIALECT: Dialect;
    /// What may stand in the body.
    const VOCABULARY: Vocabulary;
    /// What the route does, in a line.
    const SUMMARY: &'static str;

    /// Reads the body, types checked. Errors name the field.
    fn parse(body: Body<'_>) -> Result<Self, Error>;

    /// How long the model that answers is to stay in memory, where the client says it.
    fn keep_alive(&self) -> Option<KeepAlive>;

    /// What the backend is asked.
    fn question(&self) -> Result<Self::Question, Error>;

    /// What the client gets.
    fn reply(self, answer: <Self::Question as Question>::Answer, context: &Context) -> Self::Reply;
}
