//! `POST /v1/responses` and what belongs to it.
//!
//! The translation is pure: what earlier requests left behind ([`Past`]) is looked up before, where
//! it is kept. Requests say what they need with [`Request::follows`] and
//! [`Request::references`].

mod body;
mod content;
pub mod conversations;
mod encoder;
mod event;
mod input;
mod item_end;
mod items;
pub mod list;
mod open_item;
mod request;
mod response;
mod sealed;
mod text;
mod tools;

use macmlx_inference::KeepAlive;

use super::freeform;
use crate::{Context, Described, Dialect, Endpoint, Error, Translation, Vocabulary, words::Api};

pub use body::Body;
pub use encoder::Encoder;
pub use event::{Event, StreamEvent};
pub use request::{Follows, InputTokens, Past, Request};
pub use response::{OutputItem, Response};

/// The route, as data for [`Endpoint`].
#[derive(Debug)]
pub struct Responses;

impl Described for Responses {
    const SUMMARY: &'static str = "Answer, and keep the response";

    type Body = Body;
    type Answer = Response;
    type Event = StreamEvent;
}

impl Endpoint for Responses {
    type Request = Request;
    type Encoder = Encoder;

    const DIALECT: Dialect = Dialect::OpenAi;
    const VOCABULARY: Vocabulary = Vocabulary::shared(Api::Responses);

    fn parse(body: crate::Body<'_>) -> Result<Request, Error> {
        Request::parse(body.bytes)
    }

    fn keep_alive(request: &Request) -> Option<KeepAlive> {
        request.keep_alive()
    }

    fn wants_stream(request: &Request) -> bool {
        request.wants_stream()
    }

    /// Translates a request where nothing is kept.
    fn translate(request: Request, context: Context) -> Result<Translation<Encoder>, Error> {
        let past = request.past_of_nothing()?;
        request.translate(&past, context)
    }
}
