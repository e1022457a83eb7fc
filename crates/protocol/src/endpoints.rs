//! Every route that generates or encodes: its path and the type behind it.
//!
//! The server's router and the tests that walk the cases all visit this one table, so that a new
//! endpoint is its own file and one line here.

use crate::{
    Described, Encoding, anthropic,
    lm_studio::{self, Describing, measured::Measured},
    ollama::{self, embedding::Embedding, generation::Generating},
    openai,
};

/// Where an endpoint is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    /// The path that clients call. One that begins with `/v1` is also there without it.
    pub path: &'static str,
    /// Other paths of the same endpoint, which the document does not show.
    pub aliases: &'static [&'static str],
}

/// Is shown each endpoint of the table, in order.
///
/// All kinds but the first two are special to the server alone; other visitors see what they are.
pub trait Visitor {
    fn generating<E: Described>(&mut self, route: Route);

    fn encoding<E: Encoding>(&mut self, route: Route);

    /// Generates, and keeps the response for requests that go on from it.
    fn recording(&mut self, route: Route) {
        self.generating::<openai::responses::Responses>(route);
    }

    /// Generates, and tells of the model that does.
    fn describing<E: Described>(&mut self, route: Route)
    where
        E::Encoder: Describing,
    {
        self.generating::<E>(route);
    }

    /// Fills a gap, by the model that answers where none is named if the request names none.
    fn infilling(&mut self, route: Route) {
        self.generating::<openai::infill::Infill>(route);
    }

    /// Generates the next turn of a conversation that is kept.
    fn continuing(&mut self, route: Route) {
        self.generating::<lm_studio::chat::Chat>(route);
    }

    /// Generates, or only loads or unloads its model.
    fn settling_or_generating<E: Generating + Described>(&mut self, route: Route) {
        self.generating::<E>(route);
    }

    /// Encodes, or only loads or unloads its model.
    fn settling_or_encoding<E: Embedding>(&mut self, route: Route) {
        self.encoding::<E>(route);
    }
}

macro_rules! endpoints {
    ($($path:literal $(or $alias:literal)* => $kind:ident $(($endpoint:ty))?,)+) => {
        /// Shows the table to a visitor.
        pub fn visit(visitor: &mut impl Visitor) {
            $(visitor.$kind$(::<$endpoint>)?(Route {
                path: $path,
                aliases: &[$($alias),*],
            });)+
        }
    };
}

endpoints! {
    // Some clients append the path to a URL that has it already.
    "/v1/chat/completions" or "/v1/chat/completions/chat/completions"
        => generating(openai::chat_completions::ChatCompletions),
    "/v1/completions" => generating(openai::completions::Completions),
    // At the root, as llama.cpp has it, since `/v1` may be left out.
    "/v1/infill" => infilling,
    "/v1/responses" => recording,
    "/v1/embeddings" => encoding(openai::embeddings::Request),
    // As llama.cpp has it too, and where Cohere's second API is.
    "/v1/rerank" or "/v1/reranking" or "/v1/v2/rerank" => encoding(openai::rerank::Request),
    "/v1/messages" => generating(anthropic::messages::Messages),
    "/api/chat" => settling_or_generating(ollama::chat::Chat),
    "/api/generate" => settling_or_generating(ollama::generate::Generate),
    "/api/embed" => settling_or_encoding(ollama::embed::Request),
    "/api/embeddings" => settling_or_encoding(ollama::embeddings::Request),
    "/api/v0/chat/completions" => describing(Measured<openai::chat_completions::ChatCompletions>),
    "/api/v0/completions" => describing(Measured<openai::completions::Completions>),
    "/api/v0/embeddings" => encoding(openai::embeddings::Request),
    "/api/v1/chat" => continuing,
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[derive(Default)]
    struct Paths(Vec<&'static str>);

    impl Paths {
        fn take(&mut self, route: Route) {
            self.0.push(route.path);
            self.0.extend(route.aliases);
        }
    }

    impl Visitor for Paths {
        fn generating<E: Described>(&mut self, route: Route) {
            self.take(route);
        }

        fn encoding<E: Encoding>(&mut self, route: Route) {
            self.take(route);
        }
    }

    #[test]
    fn a_path_has_one_endpoint() {
        let mut paths = Paths::default();
        visit(&mut paths);
        let distinct: HashSet<_> = paths.0.iter().collect();
        assert_eq!(distinct.len(), paths.0.len());
        assert!(paths.0.iter().all(|path| path.starts_with('/')));
    }
}
