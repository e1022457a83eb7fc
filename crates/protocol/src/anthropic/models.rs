//! `GET /v1/models` and `GET /v1/models/{id}`.

use macmlx_inference::{ModelCard, rfc3339};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{Error, json, range::check_range};

/// Claude Code lists only models of a gateway whose ids begin so.
const GATEWAY_PREFIX: &str = "claude-";

const DEFAULT_LIMIT: i64 = 20;
const MAX_LIMIT: i64 = 1000;

/// A page of the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = anthropic::ModelList)]
pub struct ModelList {
    pub data: Vec<Model>,
    /// More models follow in the direction that was asked for.
    pub has_more: bool,
    pub first_id: Option<String>,
    pub last_id: Option<String>,
}

/// A model on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = anthropic::Model)]
pub struct Model {
    /// Always `model`.
    pub r#type: &'static str,
    pub id: String,
    pub display_name: String,
    /// Last change of its files, RFC 3339.
    pub created_at: String,
    /// Always `active`.
    pub lifecycle: &'static str,
    /// The model's context length.
    pub max_input_tokens: Option<u32>,
    /// Highest number of tokens of an answer: as many as the context has room for.
    pub max_tokens: Option<u32>,
}

/// Which page of the list, from the query string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    cursor: Cursor,
    limit: usize,
    /// The client wants models that are in use, rather than only retired ones.
    wants_active: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Cursor {
    Start,
    After(String),
    Before(String),
}

impl Page {
    /// Reads the pairs of a query string. Unknown names are left alone.
    pub fn from_query(pairs: &[(String, String)]) -> Result<Self, Error> {
        let mut page = Self {
            cursor: Cursor::Start,
            limit: DEFAULT_LIMIT as usize,
            wants_active: true,
        };
        let mut lifecycles = Vec::new();
        // A name without a value is left out.
        for (name, value) in pairs.iter().filter(|(_, value)| !value.is_empty()) {
            let cursor = match name.as_str() {
                "after_id" => Cursor::After(value.clone()),
                "before_id" => Cursor::Before(value.clone()),
                "limit" => {
                    let limit = json::query_value("limit", value)?;
                    let limit = check_range("limit", Some(limit), 1..=MAX_LIMIT)?;
                    page.limit = limit.unwrap_or(DEFAULT_LIMIT) as usize;
                    continue;
                }
                "lifecycle" | "lifecycle[]" => {
                    lifecycles.push(value.as_str());
                    continue;
                }
                _ => continue,
            };
            if page.cursor != Cursor::Start {
                return Err(Error::invalid(
                    name.as_str(),
                    "after_id and before_id exclude each other",
                ));
            }
            page.cursor = cursor;
        }
        page.wants_active = lifecycles.is_empty() || lifecycles.contains(&"active");
        Ok(page)
    }
}

/// A page of all local models. After the models themselves each is there once more under an id
/// for lists of gateways, which resolves to it.
pub fn list(cards: &[ModelCard], page: &Page) -> Result<ModelList, Error> {
    let mut models: Vec<Model> = cards.iter().map(model).collect();
    let aliases: Vec<Model> = models
        .iter()
        .filter(|model| !model.id.starts_with(GATEWAY_PREFIX))
        .map(|model| Model {
            id: format!("{GATEWAY_PREFIX}{}", model.id),
            ..model.clone()
        })
        .collect();
    models.extend(aliases);
    if !page.wants_active {
        models.clear();
    }
    let index_of = |param: &str, id: &str| {
        models
            .iter()
            .position(|model| model.id == id)
            .ok_or_else(|| Error::invalid(param, format!("{param}: there is no model `{id}`")))
    };
    let (range, has_more) = match &page.cursor {
        Cursor::Before(id) => {
            let end = index_of("before_id", id)?;
            let start = end.saturating_sub(page.limit);
            (start..end, start > 0)
        }
        cursor => {
            let start = match cursor {
                Cursor::After(id) => index_of("after_id", id)? + 1,
                _ => 0,
            };
            let end = models.len().min(start + page.limit);
            (start..end, end < models.len())
        }
    };
    let data = models.drain(range).collect::<Vec<_>>();
    Ok(ModelList {
        has_more,
        first_id: data.first().map(|model| model.id.clone()),
        last_id: data.last().map(|model| model.id.clone()),
        data,
    })
}

/// One model.
pub fn model(card: &ModelCard) -> Model {
    let name = card.id.rsplit('/').next().unwrap_or(&card.id);
    Model {
        r#type: "model",
        id: card.id.clone(),
        display_name: name.to_owned(),
        created_at: rfc3339(card.modified_unix),
        lifecycle: "active",
        max_input_tokens: card.context_length,
        max_tokens: card.context_length,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn card(id: &str) -> ModelCard {
        ModelCard {
            id: id.into(),
            path: "/models".into(),
            model_type: "llama".into(),
            task: macmlx_inference::ModelTask::Generate,
            context_length: Some(2048),
            size_bytes: 1,
            quantization: None,
            parameters: None,
            modified_unix: 1_700_000_000,
            digest: "0".repeat(64),
            modelfile: None,
        }
    }

    fn page(query: &[(&str, &str)]) -> Result<ModelList, Error> {
        let pairs: Vec<_> = query
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let cards = ["org/a", "claude-b", "c"].map(card);
        list(&cards, &Page::from_query(&pairs)?)
    }

    fn ids(list: &ModelList) -> Vec<&str> {
        list.data.iter().map(|model| model.id.as_str()).collect()
    }

    #[test]
    fn a_model_has_all_that_clients_read() {
        assert_eq!(
            json!(model(&card("org/small"))),
            json!({
                "type": "model",
                "id": "org/small",
                "display_name": "small",
                "created_at": "2023-11-14T22:13:20Z",
                "lifecycle": "active",
                "max_input_tokens": 2048,
                "max_tokens": 2048,
            })
        );
    }

    #[test]
    fn each_model_is_there_under_an_id_that_gateway_lists_show() {
        let list = page(&[]).unwrap();
        assert_eq!(
            ids(&list),
            ["org/a", "claude-b", "c", "claude-org/a", "claude-c"]
        );
        assert!(!list.has_more);
        assert_eq!(list.first_id.as_deref(), Some("org/a"));
        assert_eq!(list.last_id.as_deref(), Some("claude-c"));
    }

    #[test]
    fn pages_join_up_in_both_directions() {
        let first = page(&[("limit", "2")]).unwrap();
        assert_eq!(
            (ids(&first), first.has_more),
            (vec!["org/a", "claude-b"], true)
        );
        let second = page(&[("limit", "2"), ("after_id", "claude-b")]).unwrap();
        assert_eq!(
            (ids(&second), second.has_more),
            (vec!["c", "claude-org/a"], true)
        );
        let third = page(&[("limit", "2"), ("after_id", "claude-org/a")]).unwrap();
        assert_eq!((ids(&third), third.has_more), (vec!["claude-c"], false));
        let back = page(&[("limit", "2"), ("before_id", "claude-c")]).unwrap();
        assert_eq!(
            (ids(&back), back.has_more),
            (vec!["c", "claude-org/a"], true)
        );
        let start = page(&[("limit", "2"), ("before_id", "c")]).unwrap();
        assert_eq!(
            (ids(&start), start.has_more),
            (vec!["org/a", "claude-b"], false)
        );
        let end = page(&[("after_id", "claude-c")]).unwrap();
        assert_eq!((end.first_id, end.has_more), (None, false));
    }

    #[test]
    fn a_query_is_read_as_clients_write_it() {
        assert_eq!(page(&[("limit", "2.0")]), page(&[("limit", "2")]));
        let empty = [("limit", ""), ("after_id", ""), ("before_id", "")];
        assert_eq!(page(&empty), page(&[]));
        assert!(page(&[("limit", "two")]).is_err());
    }

    #[test]
    fn only_retired_models_are_none() {
        assert_eq!(page(&[("lifecycle[]", "retired")]).unwrap().data, []);
        let both = [("lifecycle[]", "retired"), ("lifecycle[]", "active")];
        assert_eq!(page(&both).unwrap().data.len(), 5);
    }

    #[test]
    fn a_wrong_query_is_named() {
        for (query, param) in [
            (vec![("limit", "0")], "limit"),
            (vec![("limit", "1001")], "limit"),
            (vec![("limit", "many")], "limit"),
            (vec![("after_id", "gone")], "after_id"),
            (vec![("after_id", "c"), ("before_id", "c")], "before_id"),
        ] {
            let error = page(&query).unwrap_err();
            assert!(
                matches!(&error, Error::Invalid { param: Some(named), .. } if named == param),
                "{error:?}"
            );
        }
    }
}
