//! Finding models by name, owner and rank, a page at a time.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::{
    Error, Hub,
    facts::{Facts, facts},
    wire,
};

/// What the listing is asked to tell of each model, beside its id.
const WANTED: [&str; 10] = [
    "author",
    "config",
    "downloads",
    "gated",
    "lastModified",
    "library_name",
    "likes",
    "pipeline_tag",
    "safetensors",
    "tags",
];

/// What comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sort {
    #[default]
    Downloads,
    Likes,
    Modified,
    Trending,
}

/// A question for the listing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Search {
    /// Part of the name.
    pub text: Option<String>,
    /// `None`: everyone's, if they are safetensors.
    pub author: Option<String>,
    pub sort: Sort,
    /// Models of a page.
    pub limit: u32,
    /// Where the page before this one ended.
    pub cursor: Option<String>,
}

/// Some models, and where the next ones are.
#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    pub models: Vec<Listed>,
    pub next_cursor: Option<String>,
}

/// A model as the hub lists it.
#[derive(Debug, Clone, PartialEq)]
pub struct Listed {
    /// `owner/name`, or a bare name of the hub's early days.
    pub id: String,
    pub downloads: u64,
    pub likes: u64,
    /// RFC 3339.
    pub modified: Option<String>,
    pub tags: Vec<String>,
    pub pipeline_tag: Option<String>,
    pub is_gated: bool,
    /// Made for MLX.
    pub is_mlx: bool,
    pub facts: Facts,
}

/// A model in an answer of the hub.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Wire {
    #[serde(default, deserialize_with = "wire::text")]
    id: Option<String>,
    /// The id, as older mirrors call it.
    #[serde(default, deserialize_with = "wire::text")]
    model_id: Option<String>,
    #[serde(default, deserialize_with = "wire::count")]
    downloads: u64,
    #[serde(default, deserialize_with = "wire::count")]
    likes: u64,
    #[serde(default, deserialize_with = "wire::text")]
    last_modified: Option<String>,
    #[serde(default, deserialize_with = "wire::text")]
    created_at: Option<String>,
    #[serde(default, deserialize_with = "wire::list")]
    tags: Vec<String>,
    #[serde(default, rename = "pipeline_tag", deserialize_with = "wire::text")]
    pipeline_tag: Option<String>,
    #[serde(default, rename = "library_name", deserialize_with = "wire::text")]
    library_name: Option<String>,
    /// `false`, `"auto"` or `"manual"`.
    #[serde(default)]
    gated: Value,
    #[serde(default)]
    config: Value,
    #[serde(default, deserialize_with = "wire::maybe")]
    safetensors: Option<Safetensors>,
}

#[derive(Debug, Deserialize)]
struct Safetensors {
    #[serde(default, deserialize_with = "wire::counts")]
    parameters: BTreeMap<String, u64>,
}

impl Wire {
    /// `None`: it has no name.
    pub(super) fn into_listed(self) -> Option<Listed> {
        let id = self.id.or(self.model_id)?;
        let counts = self.safetensors.map(|safetensors| safetensors.parameters);
        let name = id.rsplit('/').next().unwrap_or(&id);
        Some(Listed {
            facts: facts(name, &self.tags, &self.config, &counts.unwrap_or_default()),
            is_mlx: self.library_name.as_deref() == Some("mlx")
                || self.tags.iter().any(|tag| tag == "mlx"),
            is_gated: match &self.gated {
                Value::Null | Value::Bool(false) => false,
                Value::String(text) => !matches!(text.as_str(), "" | "false"),
                _ => true,
            },
            id,
            downloads: self.downloads,
            likes: self.likes,
            modified: self.last_modified.or(self.created_at),
            tags: self.tags,
            pipeline_tag: self.pipeline_tag,
        })
    }
}

/// The models of an answer. One that has no name is left out.
fn read_models(answer: &str) -> Result<Vec<Listed>, Error> {
    let models: Vec<Value> = macmlx_json::read_document(answer.as_bytes())
        .map_err(|error| Error::Unexpected(format!("a list of models: {error}")))?;
    let models = wire::to_list::<Wire>(&models.into());
    Ok(models.into_iter().filter_map(Wire::into_listed).collect())
}

impl Hub {
    /// One page of models. What was asked within the last minute is not asked again.
    pub async fn search(&self, search: &Search) -> Result<Page, Error> {
        let mut url = self.url(&["api", "models"]);
        {
            let mut query = url.query_pairs_mut();
            for (name, value) in [
                ("search", &search.text),
                ("author", &search.author),
                ("cursor", &search.cursor),
            ] {
                if let Some(value) = value {
                    query.append_pair(name, value);
                }
            }
            if search.author.is_none() {
                query.append_pair("filter", "safetensors");
            }
            let sort = match search.sort {
                Sort::Downloads => "downloads",
                Sort::Likes => "likes",
                Sort::Modified => "lastModified",
                Sort::Trending => "trendingScore",
            };
            query
                .append_pair("sort", sort)
                .append_pair("direction", "-1")
                .append_pair("limit", &search.limit.to_string());
            for wanted in WANTED {
                query.append_pair("expand[]", wanted);
            }
        }
        let answer = self.recent_answer(&url, "the list of models").await?;
        let models = read_models(&answer.text)?;
        let next_cursor = answer.next.and_then(|next| {
            next.query_pairs()
                .find(|(name, _)| name == "cursor")
                .map(|(_, cursor)| cursor.into_owned())
        });
        Ok(Page {
            models,
            next_cursor,
        })
    }
}

#[cfg(test)]
mod tests {
    use macmlx_test_support::{Source, ways_of_writing};
    use serde_json::json;

    use super::*;

    fn model() -> Value {
        json!({
            "id": "a/b-4bit", "downloads": 12, "likes": 3, "lastModified": "2026-01-01T00:00:00Z",
            "tags": ["mlx"], "pipeline_tag": "text-generation", "library_name": "mlx",
            "gated": false, "config": {"quantization": {"bits": 4, "group_size": 64}},
            "safetensors": {"parameters": {"U32": 80, "BF16": 27}, "total": 107},
        })
    }

    #[test]
    fn a_list_is_read_however_it_is_written() {
        let plain = read_models(&json!([model()]).to_string()).unwrap();
        assert_eq!((plain[0].downloads, plain[0].likes), (12, 3));
        assert_eq!(plain[0].facts.parameters, Some(647));
        for (way, bytes) in ways_of_writing(&json!([model()]), Source::Message) {
            let text = String::from_utf8_lossy(&bytes);
            assert_eq!(read_models(&text).unwrap(), plain, "{way}");
        }
        for (field, value) in [
            ("downloads", json!("12")),
            ("downloads", json!(12.5)),
            ("likes", json!("3.0")),
            ("gated", json!("false")),
            ("gated", json!(null)),
            ("modelId", json!(null)),
            ("createdAt", json!(5)),
            ("tags", json!(["mlx", null, 5])),
            (
                "safetensors",
                json!({"parameters": {"U32": "80", "BF16": 27.0, "F8": null, "I8": -5}}),
            ),
            (
                "config",
                json!({"quantization": {"bits": "4", "group_size": 64.0}}),
            ),
        ] {
            let mut odd = model();
            odd[field] = value.clone();
            let read = read_models(&json!([odd]).to_string()).unwrap();
            assert_eq!(read, plain, "{field}: {value}");
        }
    }

    #[test]
    fn what_is_no_value_costs_only_itself() {
        for field in model().as_object().unwrap().keys() {
            for value in [
                json!(null),
                json!(-1),
                json!(""),
                json!([]),
                json!({}),
                json!(true),
            ] {
                let mut odd = model();
                odd[field] = value.clone();
                let mut unnamed = model();
                unnamed["id"] = json!(null);
                let read = read_models(&json!([5, odd, unnamed, model()]).to_string()).unwrap();
                let expected = if field == "id" { 1 } else { 2 };
                assert_eq!(read.len(), expected, "{field}: {value}");
                assert_eq!(read.last().unwrap().downloads, 12);
            }
        }
        let huge = json!([{"id": "a", "safetensors": {"parameters": {"U32": u64::MAX, "F64": u64::MAX}},
            "config": {"quantization": {"bits": 4}}}]);
        assert_eq!(read_models(&huge.to_string()).unwrap().len(), 1);
        assert!(read_models("{\"error\": \"x\"}").is_err());
    }
}
