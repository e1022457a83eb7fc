//! Parameters of each model: what a request that does not say otherwise gets, in `model-params/`.

use std::{
    collections::HashMap,
    fmt::Display,
    fs,
    ops::{Bound, RangeBounds, RangeInclusive},
    path::{Path, PathBuf},
    sync::Arc,
};

use macmlx_inference::{SamplingParameter, SamplingParams};
use parking_lot::Mutex;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::{Aliases, Error, Home, file, sampling::SamplingDefaults, state_file, watched::Watched};

/// What is escaped in names of files. The rest is what the path of a URL may hold, save `/`: so do
/// the files of existing installations.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'!')
    .remove(b'$')
    .remove(b'&')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b'+')
    .remove(b',')
    .remove(b';')
    .remove(b'=')
    .remove(b':')
    .remove(b'@');

/// Parameters of a model, or of a conversation with one. An absent value is taken from the next of
/// these: conversation, model, the model's own `generation_config.json`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelParameters {
    /// How tokens are drawn.
    #[serde(flatten, with = "crate::sampling")]
    #[schema(value_type = SamplingDefaults)]
    pub sampling: SamplingParams,
    /// Longest answer, in tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// The system prompt of conversations that have none of their own; API clients bring theirs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// Whether a model that can do either thinks before it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<bool>,
    /// Variables for the chat template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub template_kwargs: Option<Map<String, Value>>,
    /// Another name for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alias: Option<String>,
    /// Seconds without a request after which the model leaves memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_seconds: Option<u64>,
    /// Kept from older versions; not supported yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adapter_name: Option<String>,
    /// Kept from older versions; not supported yet.
    #[serde(
        rename = "draftModelID",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub draft_model_id: Option<String>,
    /// Kept from older versions; not supported yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub num_draft_tokens: Option<u32>,
    #[serde(flatten)]
    #[schema(ignore)]
    pub other: Map<String, Value>,
}

/// Parameters that cannot be taken.
#[derive(Debug, thiserror::Error)]
pub enum ModelParametersError {
    /// What is wrong with one of them.
    #[error("`{key}` {reason}")]
    Refused { key: String, reason: String },
    #[error(transparent)]
    File(#[from] Error),
}

/// What older versions could do and this one cannot yet.
const UNSUPPORTED: [&str; 3] = ["adapterName", "draftModelID", "numDraftTokens"];

impl ModelParameters {
    /// Refuses what is out of range, not supported or not known, by name.
    pub fn check(&self) -> Result<(), ModelParametersError> {
        for row in SamplingParameter::ALL {
            check_range(row, row.get(&self.sampling))?;
        }
        within("maxTokens", self.max_tokens, 1..=u32::MAX)?;
        within("ttlSeconds", self.ttl_seconds, 1..=u64::from(u32::MAX))?;
        if self.alias.as_deref().is_some_and(is_no_name) {
            return Err(refused("alias", "must be visible text on one line"));
        }
        let unsupported = [
            self.adapter_name.as_deref().is_some_and(is_set),
            self.draft_model_id.as_deref().is_some_and(is_set),
            self.num_draft_tokens.is_some(),
        ];
        for (key, is_wanted) in UNSUPPORTED.into_iter().zip(unsupported) {
            if is_wanted {
                return Err(refused(key, "is not supported yet; leave it out"));
            }
        }
        match self.other.keys().next() {
            Some(key) => Err(refused(key, "is no parameter of a model")),
            None => Ok(()),
        }
    }

    /// These parameters, and where they say nothing, those of `other`.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        let template_kwargs = match (self.template_kwargs, other.template_kwargs) {
            (Some(mine), Some(mut theirs)) => {
                theirs.extend(mine);
                Some(theirs)
            }
            (mine, theirs) => mine.or(theirs),
        };
        let mut sampling = self.sampling;
        sampling.fill_in(&other.sampling);
        Self {
            sampling,
            max_tokens: self.max_tokens.or(other.max_tokens),
            system_prompt: self.system_prompt.or(other.system_prompt),
            reasoning: self.reasoning.or(other.reasoning),
            template_kwargs,
            alias: self.alias.or(other.alias),
            ttl_seconds: self.ttl_seconds.or(other.ttl_seconds),
            adapter_name: self.adapter_name.or(other.adapter_name),
            draft_model_id: self.draft_model_id.or(other.draft_model_id),
            num_draft_tokens: self.num_draft_tokens.or(other.num_draft_tokens),
            other: self.other,
        }
    }

    /// Those that a merge patch (RFC 7396) makes of these, checked as far as the patch goes.
    pub fn with_patch(&self, changes: &Map<String, Value>) -> Result<Self, ModelParametersError> {
        let Ok(Value::Object(mut document)) = serde_json::to_value(self) else {
            return Ok(self.clone());
        };
        patch(&mut document, changes)
    }
}

/// Patches a document; the parameters that it then holds. Only what the patch sets is checked: what
/// an older version left in a file is no mistake of the one who changes something else.
fn patch(
    document: &mut Map<String, Value>,
    changes: &Map<String, Value>,
) -> Result<ModelParameters, ModelParametersError> {
    let set: Map<String, Value> = changes
        .iter()
        .filter(|(_, value)| !value.is_null())
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    for (key, value) in &set {
        file::single::<ModelParameters>(key, value)
            .map_err(|reason| refused(key, &format!("cannot be that: {reason}")))?
            .check()?;
    }
    file::merge(document, changes);
    // Empty text is how older versions write "none".
    for key in ["alias", "adapterName", "draftModelID"] {
        if document.get(key).is_some_and(|value| value == "") {
            document.remove(key);
        }
    }
    Ok(file::read_typed(document).0)
}

fn check_range(row: &SamplingParameter, value: Option<f64>) -> Result<(), ModelParametersError> {
    let Some(value) = value.filter(|value| !row.range.contains(value)) else {
        return Ok(());
    };
    let most = match row.range.1 {
        Bound::Included(most) | Bound::Excluded(most) => most,
        Bound::Unbounded => f64::INFINITY,
    };
    let words = match row.range.0 {
        Bound::Excluded(limit) => format!("greater than {limit} and at most {most}"),
        Bound::Included(least) => format!("between {least} and {most}"),
        Bound::Unbounded => format!("at most {most}"),
    };
    Err(refused(
        row.setting,
        &format!("must be {words}, not {value}"),
    ))
}

fn within<T: PartialOrd + Display>(
    key: &str,
    value: Option<T>,
    range: RangeInclusive<T>,
) -> Result<(), ModelParametersError> {
    match value {
        Some(value) if !range.contains(&value) => Err(refused(
            key,
            &format!(
                "must be between {} and {}, not {value}",
                range.start(),
                range.end()
            ),
        )),
        _ => Ok(()),
    }
}

fn refused(key: &str, reason: &str) -> ModelParametersError {
    ModelParametersError::Refused {
        key: key.into(),
        reason: reason.into(),
    }
}

fn is_set(text: &str) -> bool {
    !text.is_empty()
}

fn is_no_name(text: &str) -> bool {
    !text.is_empty() && (text.trim().is_empty() || text.chars().any(char::is_control))
}

fn read(path: &Path) -> Result<ModelParameters, Error> {
    Ok(file::read_typed(&file::read_document(path)?).0)
}

/// The parameters of all models. What others write is seen at the next question.
#[derive(Debug)]
pub struct ModelParametersFolder {
    folder: PathBuf,
    aliases: Arc<Aliases>,
    files: Mutex<HashMap<PathBuf, Arc<Watched<ModelParameters>>>>,
}

impl ModelParametersFolder {
    pub fn new(home: &Home, aliases: Arc<Aliases>) -> Self {
        Self {
            folder: home.model_parameters(),
            aliases,
            files: Mutex::default(),
        }
    }

    /// Those of a model, by its whole id. A value of the wrong type counts as not set, and a file
    /// that cannot be read as it was before.
    pub fn get(&self, id: &str) -> Arc<ModelParameters> {
        self.file(id).get(read)
    }

    /// Those of a model, or why its file cannot be read. Blocks on the disk.
    pub fn read(&self, id: &str) -> Result<ModelParameters, Error> {
        read(&self.path(id))
    }

    /// Changes some of a model's parameters by a merge patch (RFC 7396: `null` unsets one). An alias
    /// becomes a name of the model everywhere. Blocks on the disk.
    pub fn patch(
        &self,
        id: &str,
        changes: &Map<String, Value>,
    ) -> Result<ModelParameters, ModelParametersError> {
        let file = self.file(id);
        let _writing = file.writing();
        let path = file.path();
        let mut document = file::read_document(path)?;
        let before = document
            .get("alias")
            .and_then(Value::as_str)
            .map(str::to_owned);
        let parameters = patch(&mut document, changes)?;
        if before != parameters.alias {
            self.rename(id, before.as_deref(), parameters.alias.as_deref())?;
        }
        state_file::write_edited(path, document).map_err(|source| Error::Io {
            path: path.into(),
            source,
        })?;
        Ok(parameters)
    }

    /// Has the aliases that older versions kept here be names of their models, unless the names are
    /// taken. Blocks on the disk.
    pub fn import_aliases(&self) -> Result<(), Error> {
        let mut paths: Vec<PathBuf> = fs::read_dir(&self.folder)
            .into_iter()
            .flatten()
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.extension().is_some_and(|end| end == "json"))
            .collect();
        paths.sort();
        for path in paths {
            let Some(id) = path.file_stem().and_then(|stem| stem.to_str()) else {
                continue;
            };
            let id = percent_decode_str(id).decode_utf8_lossy();
            let parameters = self.get(&id);
            if let Some(alias) = parameters.alias.as_deref().filter(|alias| is_set(alias))
                && !is_no_name(alias)
                && self.aliases.target(alias).is_none()
            {
                self.aliases.add(alias, &id)?;
            }
        }
        Ok(())
    }

    fn rename(&self, id: &str, before: Option<&str>, now: Option<&str>) -> Result<(), Error> {
        if let Some(now) = now {
            self.aliases.add(now, id)?;
        }
        // The old name may have been given to another model since.
        if let Some(before) = before
            && self.aliases.target(before).as_deref() == Some(id)
        {
            self.aliases.remove(before)?;
        }
        Ok(())
    }

    fn file(&self, id: &str) -> Arc<Watched<ModelParameters>> {
        let path = self.path(id);
        self.files
            .lock()
            .entry(path.clone())
            .or_insert_with(|| Arc::new(Watched::new(path)))
            .clone()
    }

    fn path(&self, id: &str) -> PathBuf {
        let name = utf8_percent_encode(id, ESCAPED);
        self.folder.join(format!("{name}.json"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    struct Place {
        _folder: tempfile::TempDir,
        home: Home,
        aliases: Arc<Aliases>,
        parameters: ModelParametersFolder,
    }

    fn place() -> Place {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        let aliases = Arc::new(Aliases::new(&home));
        Place {
            parameters: ModelParametersFolder::new(&home, aliases.clone()),
            _folder: folder,
            home,
            aliases,
        }
    }

    fn map(value: &Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    /// A file as older versions of macMLX write it.
    const OLD: &str = r#"{
      "adapterName" : "my-lora",
      "alias" : "coder",
      "maxTokens" : 4096,
      "pinned" : true,
      "systemPrompt" : "You are a grumpy code reviewer.",
      "temperature" : 0.42,
      "templateKwargs" : {
        "enable_thinking" : true
      },
      "topP" : 0.88,
      "ttlSeconds" : 300
    }"#;

    fn write_old(place: &Place, name: &str) -> PathBuf {
        let path = place.home.model_parameters().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, OLD).unwrap();
        path
    }

    #[test]
    fn names_of_models_become_names_of_files() {
        let place = place();
        for (id, name) in [
            (
                "mlx-community/Qwen3-8B-4bit",
                "mlx-community%2FQwen3-8B-4bit",
            ),
            ("a b%\u{e9}", "a%20b%25%C3%A9"),
            ("-._~!$&'()*+,;=:@", "-._~!$&'()*+,;=:@"),
            ("\"#<>?[\\]^`{|}", "%22%23%3C%3E%3F%5B%5C%5D%5E%60%7B%7C%7D"),
        ] {
            let path = place.parameters.path(id);
            assert_eq!(path.file_stem().unwrap(), name);
            assert_eq!(percent_decode_str(name).decode_utf8_lossy(), id);
        }
    }

    #[test]
    fn a_value_is_read_as_people_write_it_and_told_of_in_words_of_json() {
        let none = ModelParameters::default();
        let read = none.with_patch(&map(&json!({"maxTokens": 64.0, "topK": 20.0})));
        let read = read.unwrap();
        assert_eq!((read.max_tokens, read.sampling.top_k), (Some(64), Some(20)));
        for (key, value, reason) in [
            ("maxTokens", json!("x"), "expected an integer, got a string"),
            ("temperature", json!("x"), "expected a number, got a string"),
            (
                "templateKwargs",
                json!([]),
                "expected an object, got a list",
            ),
        ] {
            let error = none.with_patch(&map(&json!({key: value}))).unwrap_err();
            let expected = format!("`{key}` cannot be that: {reason}");
            assert_eq!(error.to_string(), expected);
        }
    }

    #[test]
    fn files_of_old_are_read_and_what_they_hold_beside_is_kept() {
        let place = place();
        let path = write_old(&place, "mlx-community%2FQwen3-8B-4bit.json");
        let id = "mlx-community/Qwen3-8B-4bit";
        let read = place.parameters.get(id);
        assert_eq!(read.sampling.temperature, Some(0.42));
        assert_eq!(read.ttl_seconds, Some(300));
        assert_eq!(read.adapter_name.as_deref(), Some("my-lora"));
        assert_eq!(
            read.template_kwargs.as_ref().unwrap()["enable_thinking"],
            true
        );
        // What cannot be honoured yet does not stand in the way of what can.
        let now = place
            .parameters
            .patch(id, &map(&json!({"topK": 20, "temperature": null})))
            .unwrap();
        assert_eq!(
            (now.sampling.top_k, now.sampling.temperature),
            (Some(20), None)
        );
        assert_eq!(*place.parameters.get(id), now);
        let written: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        let mut expected: Value = serde_json::from_str(OLD).unwrap();
        expected["topK"] = json!(20);
        expected.as_object_mut().unwrap().remove("temperature");
        assert_eq!(written, expected);
    }

    #[test]
    fn a_patch_names_what_it_cannot_do() {
        let place = place();
        for (changes, key) in [
            (json!({"temperature": 2.5}), "temperature"),
            (json!({"temperature": "hot"}), "temperature"),
            (json!({"topP": 1.5}), "topP"),
            (json!({"topK": 1.5}), "topK"),
            (json!({"mirostat": 3}), "mirostat"),
            (json!({"topK": -1}), "topK"),
            (json!({"minP": 1.5}), "minP"),
            (json!({"repetitionPenalty": 0}), "repetitionPenalty"),
            (json!({"maxTokens": 0}), "maxTokens"),
            (json!({"ttlSeconds": 0}), "ttlSeconds"),
            (json!({"templateKwargs": []}), "templateKwargs"),
            (json!({"reasoning": "much"}), "reasoning"),
            (json!({"adapterName": "lora"}), "adapterName"),
            (json!({"draftModelID": "small"}), "draftModelID"),
            (json!({"numDraftTokens": 3}), "numDraftTokens"),
            (json!({"alias": "a\nb"}), "alias"),
            (json!({"heat": 1}), "heat"),
        ] {
            let error = place.parameters.patch("m", &map(&changes)).unwrap_err();
            let ModelParametersError::Refused { key: named, .. } = &error else {
                panic!("{error}");
            };
            assert_eq!(named, key);
            assert!(error.to_string().contains(key), "{error}");
        }
        assert!(!place.home.model_parameters().exists());
        // To want none is no wish.
        let none = json!({"adapterName": "", "draftModelID": null, "alias": ""});
        assert_eq!(
            place.parameters.patch("m", &map(&none)).unwrap(),
            ModelParameters::default()
        );
    }

    #[test]
    fn a_wrong_value_costs_only_itself_and_a_damaged_file_is_kept() {
        let place = place();
        let path = write_old(&place, "m.json");
        fs::write(&path, r#"{"temperature": "hot", "topP": 0.5}"#).unwrap();
        assert_eq!(place.parameters.get("m").sampling.top_p, Some(0.5));
        fs::write(&path, "{").unwrap();
        assert_eq!(place.parameters.get("m").sampling.top_p, Some(0.5));
        assert!(place.parameters.read("m").is_err());
        let changes = map(&json!({"topK": 1}));
        assert!(place.parameters.patch("m", &changes).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "{");
    }

    #[test]
    fn every_sampling_parameter_is_kept_as_it_is_written() {
        let place = place();
        for row in SamplingParameter::ALL {
            let value = if row.is_integer { json!(1) } else { json!(0.7) };
            let changes = map(&json!({row.setting: value}));
            place.parameters.patch(row.name, &changes).unwrap();
            let kept = place.parameters.get(row.name);
            assert_eq!(row.get(&kept.sampling), value.as_f64());
            assert_eq!(
                serde_json::to_value(&*kept).unwrap(),
                Value::Object(changes)
            );
            let wrong = map(&json!({row.setting: 1e12}));
            let error = place.parameters.patch(row.name, &wrong).unwrap_err();
            assert!(error.to_string().contains(row.setting), "{error}");
        }
    }

    #[test]
    fn an_alias_is_a_name_of_the_model_everywhere() {
        let place = place();
        let patch = |changes| place.parameters.patch("org/m", &map(&changes)).unwrap();
        patch(json!({"alias": "coder"}));
        assert_eq!(place.aliases.target("coder").as_deref(), Some("org/m"));
        patch(json!({"alias": "writer"}));
        assert_eq!(place.aliases.target("coder"), None);
        assert_eq!(place.aliases.target("writer").as_deref(), Some("org/m"));
        place.aliases.add("writer", "org/other").unwrap();
        patch(json!({"alias": null}));
        assert_eq!(place.aliases.target("writer").as_deref(), Some("org/other"));
    }

    #[test]
    fn aliases_of_old_files_become_names_unless_they_are_taken() {
        let place = place();
        write_old(&place, "org%2Fone.json");
        write_old(&place, "org%2Ftwo.json");
        place.parameters.import_aliases().unwrap();
        assert_eq!(place.aliases.target("coder").as_deref(), Some("org/one"));
    }

    #[test]
    fn what_is_not_said_is_left_to_the_next() {
        let mine = ModelParameters {
            sampling: SamplingParams {
                top_k: Some(5),
                ..SamplingParams::default()
            },
            template_kwargs: Some(map(&json!({"a": 1}))),
            ..ModelParameters::default()
        };
        let theirs = ModelParameters {
            sampling: SamplingParams {
                top_k: Some(9),
                top_p: Some(0.5),
                ..SamplingParams::default()
            },
            template_kwargs: Some(map(&json!({"a": 2, "b": 2}))),
            ..ModelParameters::default()
        };
        let both = mine.or(theirs);
        assert_eq!(
            (both.sampling.top_k, both.sampling.top_p),
            (Some(5), Some(0.5))
        );
        assert_eq!(both.template_kwargs, Some(map(&json!({"a": 1, "b": 2}))));
    }
}
