//! `POST /v1/rerank`, as Jina, Cohere and vLLM have it.
//!
//! Documents that are too long are cut, as all three say of theirs.

use macmlx_inference::{KeepAlive, Overflow, Relevance, RerankRequest};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::{sampling::check_range, truncation, usage::PromptUsage};
use crate::{
    Body, Context, Dialect, Encoding, Error, Vocabulary, json, keep_alive,
    sentinel::{RESULTS, TEXT_TOKENS},
    words::{self, Api, Renamed},
};

/// Documents of one request.
const MAX_DOCUMENTS: usize = 10_000;
/// The body, types checked.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = openai::RerankRequest)]
pub struct Request {
    #[serde(flatten)]
    fields: Fields,
    #[serde(flatten)]
    truncation: truncation::Fields,
    #[serde(flatten)]
    keep_alive: keep_alive::Fields,
    #[serde(skip)]
    #[schema(ignore)]
    renamed: Renamed,
}

#[expect(clippy::struct_field_names, reason = "the name is Cohere's")]
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = openai::RerankFields)]
struct Fields {
    model: String,
    /// A text, or an object with one.
    query: Value,
    /// Texts, or objects with a `text` or the fields that `rank_fields` names.
    documents: Vec<Value>,
    /// How many results are wanted, the best ones; 0: all.
    top_n: Option<i64>,
    /// Tokens of each document that are read, beside the model's own limit; -1: only that one.
    max_tokens_per_doc: Option<i64>,
    /// Into how many parts a document may be cut that is longer than the model takes. Documents are
    /// read in one part, so that with more than 1 such a document is refused rather than cut.
    max_chunks_per_doc: Option<i64>,
    /// Default: false.
    return_documents: Option<bool>,
    /// Fields of each document to be read, one below the other.
    rank_fields: Option<Vec<String>>,
}

impl Fields {
    /// How many results are wanted; None: all.
    fn read_top_n(&self) -> Result<Option<u32>, Error> {
        Ok(RESULTS.read("top_n", self.top_n)?.of())
    }
}

impl Encoding for Request {
    type Question = RerankRequest;
    type Reply = Ranking;

    const DIALECT: Dialect = Dialect::OpenAi;
    const VOCABULARY: Vocabulary = Vocabulary::shared(Api::Rerank);
    const SUMMARY: &'static str = "Order documents by how well they answer a query";

    fn parse(body: Body<'_>) -> Result<Self, Error> {
        let words::Body { value, renamed } = words::read(Self::VOCABULARY, body.bytes)?;
        let read = || {
            Ok(Self {
                fields: json::fields(&value)?,
                truncation: json::fields(&value)?,
                keep_alive: keep_alive::Fields::read(&value)?,
                renamed: renamed.clone(),
            })
        };
        renamed.name(read())
    }

    fn keep_alive(&self) -> Option<KeepAlive> {
        self.keep_alive.wish()
    }

    fn question(&self) -> Result<RerankRequest, Error> {
        self.renamed.name(self.read_question())
    }

    fn reply(self, answer: Relevance, context: &Context) -> Ranking {
        let mut results: Vec<Ranked> = answer
            .scores
            .into_iter()
            .enumerate()
            .map(|(index, relevance_score)| Ranked {
                index,
                relevance_score,
                document: None,
            })
            .collect();
        // Equal ones stay in the order of the documents.
        results.sort_by(|one, other| other.relevance_score.total_cmp(&one.relevance_score));
        if let Ok(Some(count)) = self.fields.read_top_n() {
            results.truncate(count as usize);
        }
        if self.fields.return_documents == Some(true) {
            for result in &mut results {
                result.document = self.fields.documents.get(result.index).map(as_object);
            }
        }
        Ranking {
            id: format!("rerank-{}", context.id),
            object: "list",
            model: answer.model,
            results,
            usage: PromptUsage::new(answer.prompt_tokens),
        }
    }
}

impl Request {
    /// What is asked, in the words of the route.
    fn read_question(&self) -> Result<RerankRequest, Error> {
        let fields = &self.fields;
        fields.read_top_n()?;
        let count = fields.documents.len();
        if !(1..=MAX_DOCUMENTS).contains(&count) {
            return Err(Error::invalid(
                "documents",
                format!("documents has {count} items; 1 to {MAX_DOCUMENTS} are taken at once"),
            ));
        }
        let chunks = check_range("max_chunks_per_doc", fields.max_chunks_per_doc, 1..)?;
        let default = if chunks.is_some_and(|chunks| chunks > 1) {
            Overflow::Refuse
        } else {
            Overflow::Truncate
        };
        let rank_fields = fields.rank_fields.as_deref().unwrap_or_default();
        let text = |(index, document)| text(document, &format!("documents[{index}]"), rank_fields);
        Ok(RerankRequest {
            model: fields.model.clone(),
            query: self::text(&fields.query, "query", &[])?,
            documents: fields
                .documents
                .iter()
                .enumerate()
                .map(text)
                .collect::<Result<_, _>>()?,
            document_tokens: TEXT_TOKENS
                .read("max_tokens_per_doc", fields.max_tokens_per_doc)?
                .of(),
            token_limit: self.truncation.token_limit()?,
            overflow: self.truncation.overflow(default)?,
        })
    }
}

/// The text of a query or document.
fn text(value: &Value, path: &str, rank_fields: &[String]) -> Result<String, Error> {
    let only_text = ["text".to_owned()];
    let (object, names) = match value {
        Value::String(text) => return Ok(text.clone()),
        Value::Object(object) if rank_fields.is_empty() => (object, &only_text[..]),
        Value::Object(object) => (object, rank_fields),
        _ => {
            return Err(Error::invalid(
                path,
                format!("{path} must be a string or an object with a `text`"),
            ));
        }
    };
    let texts = names.iter().map(|name| {
        object.get(name).and_then(Value::as_str).ok_or_else(|| {
            let path = format!("{path}.{name}");
            let message = format!("{path} must be there, and a string");
            Error::invalid(path, message)
        })
    });
    Ok(texts.collect::<Result<Vec<_>, _>>()?.join("\n"))
}

fn as_object(document: &Value) -> Value {
    match document {
        Value::String(text) => json!({"text": text}),
        object => object.clone(),
    }
}

/// The answer.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = openai::Ranking)]
pub struct Ranking {
    id: String,
    object: &'static str,
    model: String,
    /// The best first.
    results: Vec<Ranked>,
    usage: PromptUsage,
}

/// One document's place.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = openai::Ranked)]
struct Ranked {
    /// Index of the document in the request.
    index: usize,
    /// 0 to 1.
    relevance_score: f32,
    /// Where it was asked for; a text is an object with that text.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    document: Option<Value>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(name: &str, value: Value) -> Value {
        let mut body = json!({"model": "m", "query": "q", "documents": ["a", "b", "c"]});
        body[name] = value;
        body
    }

    fn question(body: &Value) -> Result<RerankRequest, Error> {
        Request::parse(Body::json(body.to_string().as_bytes()))?.question()
    }

    #[test]
    fn what_would_change_the_scores_is_refused_by_name() {
        for (name, value) in [
            ("top_n", json!(1.5)),
            ("top_k", json!("all")),
            ("max_chunks_per_doc", json!(0)),
            ("max_chunks_per_doc", json!("all")),
            ("overlap_tokens", json!(80)),
            ("max_tokens_per_doc", json!(0)),
            ("raw_scores", json!(true)),
            ("use_activation", json!(false)),
            ("instruction", json!("find code")),
            ("return_documents", json!("yes")),
            ("truncate_prompt_tokens", json!(0)),
            ("documents", json!([])),
            ("documents", json!("a")),
            ("query", json!(["q"])),
        ] {
            let named = match question(&body(name, value.clone())).unwrap_err() {
                Error::Invalid { param, .. } => param.unwrap_or_default(),
                Error::Unsupported { param, .. } => param,
                other => panic!("{other:?}"),
            };
            assert_eq!(named, name, "{value}");
        }
    }

    #[test]
    fn documents_are_texts_or_have_one() {
        let documents = json!(["a", {"text": "b", "id": 7}]);
        let request = question(&body("documents", documents)).unwrap();
        assert_eq!(request.documents, ["a", "b"]);
        assert_eq!(request.overflow, Overflow::Truncate);
        let mut ranked = body(
            "documents",
            json!([{"title": "T", "author": "A", "text": "x"}]),
        );
        ranked["rank_fields"] = json!(["title", "author"]);
        assert_eq!(question(&ranked).unwrap().documents, ["T\nA"]);
    }

    #[test]
    fn documents_without_text_are_named() {
        for (documents, path) in [
            (json!(["a", 1]), "documents[1]"),
            (json!(["a", null]), "documents[1]"),
            (json!([{"title": "a"}]), "documents[0].text"),
            (json!([{"text": {"image": "x"}}]), "documents[0].text"),
        ] {
            assert!(
                matches!(
                    question(&body("documents", documents)),
                    Err(Error::Invalid { param: Some(param), .. }) if param == path
                ),
                "{path}"
            );
        }
    }

    fn ranking(body: &Value) -> Vec<(usize, Option<Value>)> {
        let request = Request::parse(Body::json(body.to_string().as_bytes())).unwrap();
        let answer = Relevance {
            scores: vec![0.5, 0.9, 0.5],
            ..Relevance::default()
        };
        let context = Context {
            id: "1".into(),
            created_unix: 0,
            fingerprint: String::new(),
        };
        let results = request.reply(answer, &context).results;
        results
            .into_iter()
            .map(|result| (result.index, result.document))
            .collect()
    }

    #[test]
    fn the_best_come_first_and_equals_in_their_order() {
        let order = |body: &Value| {
            ranking(body)
                .iter()
                .map(|(index, _)| *index)
                .collect::<Vec<_>>()
        };
        assert_eq!(order(&body("top_n", json!(null))), [1, 0, 2]);
        assert_eq!(order(&body("top_n", json!(0))), [1, 0, 2]);
        assert_eq!(order(&body("top_n", json!(-1))), [1, 0, 2]);
        assert_eq!(order(&body("top_n", json!(2))), [1, 0]);
        assert_eq!(order(&body("top_k", json!(2.0))), [1, 0]);
        assert_eq!(order(&body("top_n", json!(9))), [1, 0, 2]);
    }

    #[test]
    fn a_limit_for_documents_is_handed_on() {
        for (value, expected) in [
            (json!(4096), Some(4096)),
            (json!(7.0), Some(7)),
            (json!(-1), None),
            (json!(null), None),
        ] {
            let request = question(&body("max_tokens_per_doc", value)).unwrap();
            assert_eq!(request.document_tokens, expected);
            assert_eq!(request.overflow, Overflow::Truncate);
        }
    }

    #[test]
    fn a_document_that_would_need_more_parts_is_not_cut_in_silence() {
        for (chunks, expected) in [
            (json!(null), Overflow::Truncate),
            (json!(1), Overflow::Truncate),
            (json!(10.0), Overflow::Refuse),
        ] {
            let request = question(&body("max_chunks_per_doc", chunks)).unwrap();
            assert_eq!(request.overflow, expected);
        }
        let mut asked = body("max_chunks_per_doc", json!(10));
        asked["truncation"] = json!(true);
        assert_eq!(question(&asked).unwrap().overflow, Overflow::Truncate);
    }

    #[test]
    fn documents_come_back_as_they_were() {
        let mut asked = body("return_documents", json!(true));
        asked["documents"] = json!(["a", {"text": "b", "id": 7}, "c"]);
        assert_eq!(
            ranking(&asked)[..2],
            [
                (1, Some(json!({"text": "b", "id": 7}))),
                (0, Some(json!({"text": "a"}))),
            ]
        );
        asked["return_documents"] = json!(false);
        assert_eq!(ranking(&asked)[0].1, None);
    }
}
