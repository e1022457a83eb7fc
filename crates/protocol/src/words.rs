//! The words of all dialects on every route: what is read, what is another name for it, what is
//! refused and what changes nothing.
//!
//! A client that was written for one API is pointed at another, so a request may hold any of these
//! words. Before a route reads a body, each word of it is looked up: where the route has the same
//! thing under another name the value is moved there, so that one reader serves all names; where it
//! has not, the request is refused by name. Words that no table has are taken, unless they look like
//! a slip of one that would change the answer.

mod encoding;
mod format;
mod harmless;
mod prompt;
mod reasoning;
mod renamed;
mod sampling;
mod slip;
mod stopping;
mod tools;
mod value;

use macmlx_inference::SamplingParameter;
use serde_json::{Map, Value};

use crate::{Error, json};
use renamed::Renaming;
use value::asks_nothing;

pub(crate) use format::{TAGS, WHITESPACE};
pub(crate) use renamed::Renamed;

/// Routes that read a body of words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Api {
    Chat,
    Completions,
    Responses,
    Messages,
    OllamaChat,
    OllamaGenerate,
    Infill,
    Embeddings,
    Rerank,
    OllamaEmbed,
    OllamaEmbeddings,
}

const APIS: usize = 11;

/// The words that the body of a route may have. The table of endpoints says of each route which.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vocabulary(Words);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Words {
    /// Those of all dialects, as far as the route has something for them.
    Shared(Api),
    /// These and no others.
    Own(&'static [&'static str]),
}

impl Vocabulary {
    pub(crate) const fn shared(api: Api) -> Self {
        Self(Words::Shared(api))
    }

    pub(crate) const fn own(fields: &'static [&'static str]) -> Self {
        Self(Words::Own(fields))
    }
}

const OPENAI: &[Api] = &[Api::Chat, Api::Completions, Api::Infill, Api::Responses];
/// Routes that complete a text as it stands.
const TEXT: &[Api] = &[Api::Completions, Api::Infill];
const OLLAMA: &[Api] = &[Api::OllamaChat, Api::OllamaGenerate];
/// OpenAI's routes and Anthropic's, which share their samplers and grammars.
const V1: &[Api] = &[
    Api::Chat,
    Api::Completions,
    Api::Infill,
    Api::Responses,
    Api::Messages,
];
const GENERATING: &[Api] = &[
    Api::Chat,
    Api::Completions,
    Api::Infill,
    Api::Responses,
    Api::Messages,
    Api::OllamaChat,
    Api::OllamaGenerate,
];

/// What a route makes of a word.
#[derive(Debug, Clone, Copy)]
enum Use {
    /// Read at these places, the first of which has the say. Under another name the value is moved
    /// there.
    Read(&'static [&'static str]),
    /// The same in other words, which are looked up in turn.
    Rewritten(Rewrite),
    /// Refused with this reason, unless the value asks for nothing.
    Refused(&'static str),
    /// Taken, for this reason.
    Harmless(#[cfg_attr(not(test), expect(dead_code, reason = "for readers"))] &'static str),
}

/// What a value means in other words: names, or places within an object of the route's own.
type Rewrite = fn(&Value) -> Result<Vec<(&'static str, Value)>, Wrong>;

/// Why a value cannot be said in other words; the reader of requests adds the name.
struct Wrong(&'static str);

/// Names of one thing, whichever dialect they come from.
#[derive(Debug)]
struct Word {
    names: &'static [&'static str],
    /// With what the word may be there although it is refused; `null` always is such a value.
    nothing: Nothing,
    uses: [Use; APIS],
}

/// Which values of a word ask for nothing.
#[derive(Debug, Clone, Copy)]
enum Nothing {
    Where(fn(&Value) -> bool),
    /// Those that do nothing as this parameter.
    Parameter(&'static SamplingParameter),
}

const fn word(names: &'static [&'static str]) -> Word {
    Word {
        names,
        nothing: Nothing::Where(asks_nothing),
        uses: [Use::Refused("there is nothing like it here"); APIS],
    }
}

/// A word that changes no answer on any route.
const fn harmless(names: &'static [&'static str], reason: &'static str) -> Word {
    Word {
        names,
        nothing: Nothing::Where(asks_nothing),
        uses: [Use::Harmless(reason); APIS],
    }
}

impl Word {
    const fn on(mut self, apis: &[Api], used: Use) -> Self {
        let mut index = 0;
        while index < apis.len() {
            self.uses[apis[index] as usize] = used;
            index += 1;
        }
        self
    }

    const fn read(self, apis: &[Api], places: &'static [&'static str]) -> Self {
        self.on(apis, Use::Read(places))
    }

    const fn rewritten(self, apis: &[Api], rewrite: Rewrite) -> Self {
        self.on(apis, Use::Rewritten(rewrite))
    }

    const fn refused(self, apis: &[Api], reason: &'static str) -> Self {
        self.on(apis, Use::Refused(reason))
    }

    const fn harmless(self, apis: &[Api], reason: &'static str) -> Self {
        self.on(apis, Use::Harmless(reason))
    }

    const fn unless(mut self, asks_nothing: fn(&Value) -> bool) -> Self {
        self.nothing = Nothing::Where(asks_nothing);
        self
    }

    fn asks_nothing(&self, value: &Value) -> bool {
        match self.nothing {
            Nothing::Where(asks_nothing) => asks_nothing(value),
            Nothing::Parameter(row) => value
                .as_f64()
                .is_some_and(|number| row.is_nothing(&row.openai(), number)),
        }
    }

    fn used(&self, api: Api) -> Use {
        self.uses[api as usize]
    }
}

impl Api {
    fn words(self) -> impl Iterator<Item = &'static Word> {
        let tables: Vec<&'static [Word]> = match self {
            Self::Embeddings | Self::Rerank | Self::OllamaEmbed | Self::OllamaEmbeddings => {
                vec![encoding::WORDS]
            }
            _ => vec![
                prompt::WORDS,
                sampling::numbers(),
                sampling::WORDS,
                stopping::WORDS,
                reasoning::WORDS,
                format::WORDS,
                tools::WORDS,
                harmless::WORDS,
            ],
        };
        tables.into_iter().flatten()
    }

    fn word(self, name: &str) -> Option<&'static Word> {
        self.words().find(|word| word.names.contains(&name))
    }
}

/// A body in the words of its route.
#[derive(Debug)]
pub(crate) struct Body {
    pub(crate) value: Value,
    pub(crate) renamed: Renamed,
}

/// Reads a body and puts it into the words of the route.
pub(crate) fn read(vocabulary: Vocabulary, bytes: &[u8]) -> Result<Body, Error> {
    read_object(vocabulary, json::object(bytes)?)
}

/// Does the same as [`read`], for an object.
pub(crate) fn read_object(vocabulary: Vocabulary, value: Value) -> Result<Body, Error> {
    match vocabulary.0 {
        Words::Shared(api) => translate(api, value),
        Words::Own(fields) => {
            refuse_others(&value, fields)?;
            Ok(Body {
                value,
                renamed: Renamed::default(),
            })
        }
    }
}

/// Refuses a field that is not known, as LM Studio does.
pub(crate) fn refuse_others(body: &Value, known: &[&str]) -> Result<(), Error> {
    let unknown = body
        .as_object()
        .into_iter()
        .flat_map(|fields| fields.iter())
        .find(|(name, value)| !value.is_null() && !known.contains(&name.as_str()));
    match unknown {
        Some((name, _)) => Err(Error::unsupported(
            name.as_str(),
            format!("the fields are {}", known.join(", ")),
        )),
        None => Ok(()),
    }
}

fn translate(api: Api, value: Value) -> Result<Body, Error> {
    let given: Vec<(String, Value)> = written(&value);
    let mut body = Body {
        value,
        renamed: Renamed::default(),
    };
    for (path, value) in given {
        let name = path.strip_prefix("options.").unwrap_or(&path);
        if value.is_null() {
            continue;
        }
        match api.word(name) {
            Some(word) => body.hear(api, word, &path, &path, &value, 0)?,
            None => slip::check(api, name, &path)?,
        }
    }
    Ok(body)
}

/// The words of a body with their values. Ollama's clients put most of theirs into `options`.
fn written(body: &Value) -> Vec<(String, Value)> {
    let fields = body.as_object().into_iter().flatten();
    let mut words = Vec::new();
    for (name, value) in fields {
        match value {
            Value::Object(options) if name == "options" => {
                let options = options.iter();
                words.extend(
                    options.map(|(name, value)| (format!("options.{name}"), value.clone())),
                );
            }
            value => words.push((name.clone(), value.clone())),
        }
    }
    words
}

impl Body {
    /// Does with a word what the route makes of it. `path` is where it would stand, `source` where
    /// the client wrote it.
    fn hear(
        &mut self,
        api: Api,
        word: &Word,
        path: &str,
        source: &str,
        value: &Value,
        depth: u32,
    ) -> Result<(), Error> {
        match word.used(api) {
            Use::Read(places) if path == source && places.contains(&path) => Ok(()),
            Use::Read(places) => {
                if path == source {
                    take(&mut self.value, source);
                }
                self.put(places, source, value, depth > 0)
            }
            Use::Rewritten(rewrite) => {
                take(&mut self.value, source);
                let words = rewrite(value).map_err(|Wrong(why)| Error::unsupported(source, why))?;
                for (name, value) in words {
                    match api.word(name) {
                        Some(word) if depth < 4 => {
                            self.hear(api, word, name, source, &value, depth + 1)?;
                        }
                        _ => self.put(&[name], source, &value, true)?,
                    }
                }
                Ok(())
            }
            Use::Refused(_) if word.asks_nothing(value) => Ok(()),
            Use::Refused(reason) => Err(Error::unsupported(source, reason)),
            Use::Harmless(_) => Ok(()),
        }
    }

    /// Moves a value to where the route reads it.
    fn put(
        &mut self,
        places: &[&'static str],
        source: &str,
        value: &Value,
        is_rewritten: bool,
    ) -> Result<(), Error> {
        let taken = places
            .iter()
            .find_map(|place| Some((*place, get(&self.value, place)?)));
        if let Some((place, there)) = taken {
            if value::is_same(there, value) {
                return Ok(());
            }
            let other = self.renamed.source(place);
            return Err(Error::invalid(
                source,
                format!("{source} and {other} say different things; send one of them"),
            ));
        }
        let place = places[0];
        set(&mut self.value, place, value.clone());
        self.renamed.0.push(Renaming {
            place,
            source: source.to_owned(),
            is_rewritten,
        });
        Ok(())
    }
}

/// A value other than null, at a path of names.
fn get<'a>(body: &'a Value, path: &str) -> Option<&'a Value> {
    let mut value = body;
    for name in path.split('.') {
        value = value.get(name)?;
    }
    Some(value).filter(|value| !value.is_null())
}

fn set(body: &mut Value, path: &str, value: Value) {
    let mut place = body;
    for name in path.split('.') {
        if !place.is_object() {
            *place = Value::Object(Map::new());
        }
        place = &mut place[name];
    }
    *place = value;
}

fn take(body: &mut Value, path: &str) {
    let (parent, name) = match path.split_once('.') {
        Some((parent, name)) => (body.get_mut(parent), name),
        None => (Some(body), path),
    };
    if let Some(Value::Object(fields)) = parent {
        fields.remove(name);
    }
}

#[cfg(test)]
mod tests;
