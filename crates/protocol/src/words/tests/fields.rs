//! The tables against the types that read bodies: what either has, the other has too.

use std::collections::BTreeSet;

use super::*;
use crate::json::asked::record_fields;

/// What the reader of each route asks for in a body, and in the object `options` of it.
struct Asks(Vec<(Route, Vocabulary, BTreeSet<String>)>);

impl Asks {
    fn add(&mut self, route: Route, vocabulary: Vocabulary, read: impl FnOnce(RequestBody<'_>)) {
        let mut body = match vocabulary.0 {
            Words::Shared(api) => plain(api),
            Words::Own(_) => json!({"model": "m", "input": "hi"}),
        };
        // Fields of it are read where it is there.
        if let Words::Shared(api) = vocabulary.0
            && reads_options(api)
        {
            body["options"] = json!({});
        }
        let body = body.to_string();
        let ((), fields) = record_fields(|| read(RequestBody::json(body.as_bytes())));
        let fields = fields.into_iter().filter(|field| {
            let field = field.strip_prefix("options.").unwrap_or(field);
            !field.contains(['.', '['])
        });
        self.0.push((route, vocabulary, fields.collect()));
    }
}

fn reads_options(api: Api) -> bool {
    let word = api.word("options").unwrap();
    matches!(word.used(api), Use::Read(_))
}

impl Visitor for Asks {
    fn generating<E: Described>(&mut self, route: Route) {
        self.add(route, E::VOCABULARY, |body| {
            E::parse(body).unwrap();
        });
    }

    fn encoding<E: Encoding>(&mut self, route: Route) {
        self.add(route, E::VOCABULARY, |body| {
            E::parse(body).unwrap();
        });
    }
}

fn asks() -> Vec<(Route, Vocabulary, BTreeSet<String>)> {
    let mut asks = Asks(Vec::new());
    visit(&mut asks);
    asks.0
}

#[test]
fn what_a_reader_asks_for_is_in_the_table_and_is_not_refused_there() {
    let mut wrong = Vec::new();
    for (Route { path, .. }, vocabulary, fields) in asks() {
        assert!(fields.len() > 3, "{path}: {fields:?}");
        for field in fields {
            let name = field.strip_prefix("options.").unwrap_or(&field);
            let word = match vocabulary.0 {
                Words::Shared(api) => api.word(name).map(|word| word.used(api)),
                Words::Own(own) => own.contains(&name).then_some(Use::Harmless("its own")),
            };
            let is_known = match word {
                Some(Use::Read(places)) => places.contains(&field.as_str()),
                // It is echoed, kept, or is about the reply.
                Some(Use::Harmless(_)) => true,
                // A type with flattened parts asks for `*`; its parts must be read one by one.
                Some(Use::Refused(_) | Use::Rewritten(_)) | None => false,
            };
            if !is_known {
                wrong.push(format!("{path}: {field}: {word:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_a_table_has_as_read_a_reader_asks_for() {
    for (Route { path, .. }, vocabulary, fields) in asks() {
        match vocabulary.0 {
            Words::Own(own) => {
                for field in own {
                    assert!(fields.contains(*field), "{path}: {field}");
                }
            }
            Words::Shared(api) => {
                for word in api.words() {
                    let Use::Read(places) = word.used(api) else {
                        continue;
                    };
                    for place in places {
                        assert!(
                            fields.contains(*place),
                            "{path}: `{place}` is in the table, and nothing reads it"
                        );
                    }
                }
            }
        }
    }
}
