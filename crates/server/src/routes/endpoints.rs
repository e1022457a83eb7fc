//! The routes of the table of endpoints, each with the handler of its kind.

use std::sync::Arc;

use axum::routing::{MethodRouter, post};
use macmlx_protocol::{
    Described, Dialect, Encoding, Endpoint,
    endpoints::{Route, Visitor, visit},
    lm_studio::{Describing, chat::Chat},
    ollama::{embedding::Embedding, generation::Generating},
    openai::{infill::Infill, responses::Responses},
};

use super::{
    infill, lm_studio,
    ollama::{embedding, generation},
    responses,
};
use crate::{
    api::{Api, Doc},
    encode::encode,
    generate::{generate, generate_described},
    router::App,
};

/// Endpoints whose path begins with `/v1`, without it.
pub(crate) fn under_v1() -> Api {
    place_endpoints(|_, path| path.strip_prefix("/v1"))
}

/// Does the same as [`under_v1`], for one dialect alone.
pub(crate) fn under_v1_of(dialect: Dialect) -> Api {
    place_endpoints(|of, path| path.strip_prefix("/v1").filter(|_| of == dialect))
}

/// All other endpoints.
pub(crate) fn beside_v1() -> Api {
    place_endpoints(|_, path| (!path.starts_with("/v1/")).then_some(path))
}

/// The endpoints that get a path.
fn place_endpoints(place: impl Fn(Dialect, &'static str) -> Option<&'static str>) -> Api {
    let mut placed = Placed {
        place,
        api: Api::default(),
    };
    visit(&mut placed);
    placed.api
}

struct Placed<P> {
    /// The path, of a dialect's path in the table; `None`: the endpoint is left out.
    place: P,
    api: Api,
}

impl<P: Fn(Dialect, &'static str) -> Option<&'static str>> Placed<P> {
    fn add(&mut self, dialect: Dialect, route: Route, handler: &MethodRouter<Arc<App>>, doc: Doc) {
        let Some(path) = (self.place)(dialect, route.path) else {
            return;
        };
        let mut api = std::mem::take(&mut self.api).route(path, handler.clone(), [doc]);
        for alias in route.aliases {
            if let Some(alias) = (self.place)(dialect, alias) {
                api = api.untold(alias, handler.clone());
            }
        }
        self.api = api;
    }
}

impl<P: Fn(Dialect, &'static str) -> Option<&'static str>> Visitor for Placed<P> {
    fn generating<E: Described>(&mut self, route: Route) {
        let doc = Doc::generating::<E>();
        self.add(E::DIALECT, route, &post(generate::<E>), doc);
    }

    fn encoding<E: Encoding>(&mut self, route: Route) {
        let doc = Doc::encoding::<E>();
        self.add(E::DIALECT, route, &post(encode::<E>), doc);
    }

    fn recording(&mut self, route: Route) {
        let doc = Doc::generating::<Responses>();
        self.add(Dialect::OpenAi, route, &post(responses::create), doc);
    }

    fn describing<E: Described>(&mut self, route: Route)
    where
        E::Encoder: Describing,
    {
        let doc = Doc::generating::<E>();
        self.add(E::DIALECT, route, &post(generate_described::<E>), doc);
    }

    fn infilling(&mut self, route: Route) {
        let doc = Doc::generating::<Infill>();
        self.add(Infill::DIALECT, route, &post(infill::fill_in), doc);
    }

    fn continuing(&mut self, route: Route) {
        let doc = Doc::generating::<Chat>();
        self.add(Dialect::LmStudio, route, &post(lm_studio::chat::go_on), doc);
    }

    fn settling_or_generating<E: Generating + Described>(&mut self, route: Route) {
        let doc = Doc::generating::<E>();
        self.add(E::DIALECT, route, &post(generation::answer::<E>), doc);
    }

    fn settling_or_encoding<E: Embedding>(&mut self, route: Route) {
        let doc = Doc::encoding::<E>();
        self.add(E::DIALECT, route, &post(embedding::answer::<E>), doc);
    }
}
