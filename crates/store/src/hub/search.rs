//! Finding models by name, owner and rank, a page at a time.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::{
    Error, Hub,
    facts::{Facts, facts},
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

/// A model in an answer of the hub; mirrors leave out what they like.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Wire {
    id: String,
    #[serde(default)]
    downloads: u64,
    #[serde(default)]
    likes: u64,
    last_modified: Option<String>,
    created_at: Option<String>,
    #[serde(default)]
    tags: Vec<String>,
    #[serde(rename = "pipeline_tag")]
    pipeline_tag: Option<String>,
    #[serde(rename = "library_name")]
    library_name: Option<String>,
    /// `false`, `"auto"` or `"manual"`.
    #[serde(default)]
    gated: Value,
    #[serde(default)]
    config: Value,
    safetensors: Option<Safetensors>,
}

#[derive(Debug, Deserialize)]
struct Safetensors {
    #[serde(default)]
    parameters: BTreeMap<String, u64>,
}

impl From<Wire> for Listed {
    fn from(wire: Wire) -> Self {
        let counts = wire
            .safetensors
            .map(|safetensors| safetensors.parameters)
            .unwrap_or_default();
        let name = wire.id.rsplit('/').next().unwrap_or(&wire.id);
        Self {
            facts: facts(name, &wire.tags, &wire.config, &counts),
            is_mlx: wire.library_name.as_deref() == Some("mlx")
                || wire.tags.iter().any(|tag| tag == "mlx"),
            is_gated: !matches!(wire.gated, Value::Null | Value::Bool(false)),
            id: wire.id,
            downloads: wire.downloads,
            likes: wire.likes,
            modified: wire.last_modified.or(wire.created_at),
            tags: wire.tags,
            pipeline_tag: wire.pipeline_tag,
        }
    }
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
        let models: Vec<Wire> = serde_json::from_str(&answer.text)
            .map_err(|error| Error::Unexpected(format!("a list of models: {error}")))?;
        let next_cursor = answer.next.and_then(|next| {
            next.query_pairs()
                .find(|(name, _)| name == "cursor")
                .map(|(_, cursor)| cursor.into_owned())
        });
        Ok(Page {
            models: models.into_iter().map(Into::into).collect(),
            next_cursor,
        })
    }
}
