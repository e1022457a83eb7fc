//! Reading `settings.json` forgivingly and patching it without losing what others wrote there.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::{Settings, setting, state_file};

/// Settings and what was wrong with the file they came from.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    pub settings: Settings,
    /// Sentences for a person; each says what was done about it.
    pub warnings: Vec<String>,
}

/// A patch that cannot be applied.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot access {}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{} is not a JSON object; repair or remove it first", path.display())]
    Unreadable { path: PathBuf },
    #[error("setting `{key}` cannot be that: {reason}")]
    Invalid { key: String, reason: String },
    #[error("a settings patch is a JSON object of keys and values")]
    NotAnObject,
}

/// Reads the settings. A missing file means defaults; one that is not a JSON object is set aside;
/// a value of the wrong type counts as its default and stays in the file.
pub fn load(path: &Path) -> Result<Loaded, Error> {
    let mut warnings = Vec::new();
    let document = match read_document(path) {
        Ok(document) => document,
        Err(Error::Unreadable { .. }) => {
            let aside = state_file::set_aside(path).map_err(|source| Error::Io {
                path: path.into(),
                source,
            })?;
            warnings.push(format!(
                "{} could not be read; it is kept as {} and defaults apply",
                path.display(),
                aside.display()
            ));
            Map::new()
        }
        Err(error) => return Err(error),
    };
    let (settings, wrong) = read_typed(&document);
    warnings.extend(wrong.iter().map(|wrong| describe_ignored(path, wrong)));
    Ok(Loaded { settings, warnings })
}

/// What is wrong with the file, without setting anything aside.
pub(crate) fn warnings(path: &Path) -> Vec<String> {
    match read_document(path) {
        Ok(document) => {
            let (_, wrong) = read_typed::<Settings>(&document);
            wrong
                .iter()
                .map(|wrong| describe_ignored(path, wrong))
                .collect()
        }
        Err(error) => vec![error.to_string()],
    }
}

fn describe_ignored(path: &Path, (key, reason): &(String, String)) -> String {
    format!(
        "{}: `{key}` is ignored, its default applies: {reason}",
        path.display()
    )
}

/// Reads the settings and changes nothing: values that cannot be read count as their defaults.
pub(crate) fn read(path: &Path) -> Result<Settings, Error> {
    Ok(read_typed(&read_document(path)?).0)
}

/// Applies a JSON merge patch (RFC 7396: `null` removes a key) and writes the file. Blocks while
/// another process writes it.
pub fn patch(path: &Path, changes: &Value) -> Result<Settings, Error> {
    update(path, |_| changes.clone())
}

/// Applies a patch that depends on the present settings, while no other writer can change them.
pub(crate) fn update(
    path: &Path,
    decide: impl FnOnce(&Settings) -> Value,
) -> Result<Settings, Error> {
    let failed = |source| Error::Io {
        path: path.into(),
        source,
    };
    let _alone = state_file::lock(path).map_err(failed)?;
    let mut document = read_document(path)?;
    let (current, _) = read_typed::<Settings>(&document);
    let Value::Object(changes) = decide(&current) else {
        return Err(Error::NotAnObject);
    };
    if changes.is_empty() {
        return Ok(current);
    }
    merge(&mut document, &changes);
    let (settings, wrong) = read_typed::<Settings>(&document);
    let wrong = wrong.into_iter().find(|(key, _)| changes.contains_key(key));
    if let Some((key, reason)) = wrong.or_else(|| setting::find_broken(&settings, &changes)) {
        return Err(Error::Invalid { key, reason });
    }
    state_file::write_edited(path, document).map_err(failed)?;
    Ok(settings)
}

pub(crate) fn read_document(path: &Path) -> Result<Map<String, Value>, Error> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Map::new()),
        Err(source) => {
            return Err(Error::Io {
                path: path.into(),
                source,
            });
        }
    };
    macmlx_json::read_edited(&bytes).map_err(|_| Error::Unreadable { path: path.into() })
}

/// What a document says, and each key whose value has the wrong type.
pub(crate) fn read_typed<T: DeserializeOwned + Default>(
    document: &Map<String, Value>,
) -> (T, Vec<(String, String)>) {
    let mut good = Map::new();
    let mut wrong = Vec::new();
    for (key, value) in document {
        // `null` is how other writers spell "not set".
        if value.is_null() {
            continue;
        }
        match single::<T>(key, value) {
            Ok(_) => {
                good.insert(key.clone(), value.clone());
            }
            Err(reason) => wrong.push((key.clone(), reason)),
        }
    }
    let value = macmlx_json::read(&Value::Object(good)).unwrap_or_default();
    (value, wrong)
}

/// What a document with one key says, or what is wrong with its value.
pub(crate) fn single<T: DeserializeOwned>(key: &str, value: &Value) -> Result<T, String> {
    let document = Map::from_iter([(key.to_owned(), value.clone())]);
    macmlx_json::read(&Value::Object(document)).map_err(|error| {
        let reason = error.within(key).to_string();
        // Flattened fields name themselves.
        let named = format!("{key}: ");
        reason.strip_prefix(&named).unwrap_or(&reason).to_owned()
    })
}

pub(crate) fn merge(target: &mut Map<String, Value>, changes: &Map<String, Value>) {
    for (key, change) in changes {
        match change {
            Value::Null => {
                target.remove(key);
            }
            Value::Object(nested) => {
                let inner = target.entry(key.clone()).or_insert(Value::Null);
                if !inner.is_object() {
                    *inner = Value::Object(Map::new());
                }
                if let Value::Object(inner) = inner {
                    merge(inner, nested);
                }
            }
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                target.insert(key.clone(), change.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use macmlx_test_support::{Source, ways_of_writing};
    use serde_json::json;

    use super::*;

    fn file_with(contents: &str) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("settings.json");
        fs::write(&path, contents).unwrap();
        (folder, path)
    }

    #[test]
    fn a_missing_file_means_defaults() {
        let folder = tempfile::tempdir().unwrap();
        let loaded = load(&folder.path().join("settings.json")).unwrap();
        assert_eq!(loaded.settings, Settings::default());
        assert!(loaded.warnings.is_empty());
    }

    #[test]
    fn keys_of_existing_installations_are_honoured() {
        let (_folder, path) = file_with(
            r#"{"serverPort": 8123, "serverAPIKey": "k", "hfEndpoint": "https://hf-mirror.com",
                "maxResidentMemoryGB": 12, "lastLoadedModel": null, "preferredEngine": "mlx-swift-lm"}"#,
        );
        let loaded = load(&path).unwrap();
        assert_eq!(loaded.settings.server_port, 8123);
        assert_eq!(loaded.settings.api_key(), Some("k"));
        assert_eq!(loaded.settings.hf_endpoint, "https://hf-mirror.com");
        assert_eq!(loaded.settings.max_resident_memory_gb, Some(12.0));
        assert!(loaded.warnings.is_empty());
    }

    #[test]
    fn the_file_is_read_however_people_write_it() {
        let document = json!({"serverPort": 8123, "serverAPIKey": "k", "maxResidentMemoryGB": 12});
        for (way, bytes) in ways_of_writing(&document, Source::Edited) {
            let (_folder, path) = file_with("");
            fs::write(&path, bytes).unwrap();
            let settings = load(&path).unwrap().settings;
            assert_eq!(settings.server_port, 8123, "{way}");
            assert_eq!(settings.api_key(), Some("k"), "{way}");
            let patched = patch(&path, &json!({"serverPort": 8124})).unwrap();
            assert_eq!(patched.max_resident_memory_gb, Some(12.0), "{way}");
        }
    }

    #[test]
    fn an_empty_key_is_no_key() {
        let (_folder, path) = file_with(r#"{"serverAPIKey": ""}"#);
        assert_eq!(load(&path).unwrap().settings.api_key(), None);
    }

    #[test]
    fn an_unreadable_file_is_kept_aside_and_reported() {
        let (folder, path) = file_with("{ not json");
        let loaded = load(&path).unwrap();
        assert_eq!(loaded.settings, Settings::default());
        assert_eq!(loaded.warnings.len(), 1);
        assert!(!path.exists());
        let kept = fs::read_dir(folder.path())
            .unwrap()
            .next()
            .unwrap()
            .unwrap();
        assert_eq!(fs::read_to_string(kept.path()).unwrap(), "{ not json");
    }

    #[test]
    fn a_wrong_value_costs_only_itself() {
        let (_folder, path) = file_with(r#"{"serverPort": "eighty", "maxBatchSize": 3}"#);
        let loaded = load(&path).unwrap();
        assert_eq!(loaded.settings.server_port, 8000);
        assert_eq!(loaded.settings.max_batch_size, 3);
        assert!(loaded.warnings[0].contains("serverPort"));
        assert!(path.exists());
    }

    #[test]
    fn a_file_is_read_as_people_write_it_and_told_of_in_words_of_json() {
        let (_folder, path) = file_with("\u{feff}{\"serverPort\": 8123.0, \"maxBatchSize\": 2e0}");
        let loaded = load(&path).unwrap();
        assert_eq!(loaded.settings.server_port, 8123);
        assert_eq!(loaded.settings.max_batch_size, 2);
        for (key, value, reason) in [
            (
                "serverPort",
                json!("x"),
                "expected an integer, got a string",
            ),
            (
                "serverPort",
                json!(70_000),
                "expected an integer between 0 and 65535, got 70000",
            ),
            (
                "allowedHosts",
                json!(["a", 1]),
                "[1]: expected a string, got a number",
            ),
            ("allowedHosts", json!({}), "expected a list, got an object"),
        ] {
            let error = patch(&path, &json!({key: value})).unwrap_err();
            let expected = format!("setting `{key}` cannot be that: {reason}");
            assert_eq!(error.to_string(), expected);
        }
    }

    #[test]
    fn a_patch_keeps_unknown_keys_and_removes_nulls() {
        let (_folder, path) =
            file_with(r#"{"sparkleUpdateChannel": "beta", "serverPort": 1, "kvBits": 4}"#);
        let settings = patch(&path, &json!({"serverPort": 9000, "kvBits": null})).unwrap();
        assert_eq!(settings.server_port, 9000);
        let written: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        assert_eq!(
            written,
            json!({"sparkleUpdateChannel": "beta", "serverPort": 9000})
        );
    }

    #[test]
    fn a_bad_patch_changes_nothing() {
        let (_folder, path) = file_with(r#"{"serverPort": 1}"#);
        let error = patch(&path, &json!({"serverPort": "x"})).unwrap_err();
        assert!(error.to_string().contains("serverPort"));
        assert_eq!(fs::read_to_string(&path).unwrap(), r#"{"serverPort": 1}"#);
        assert!(matches!(patch(&path, &json!([])), Err(Error::NotAnObject)));
    }

    #[test]
    fn what_cannot_be_honoured_is_refused() {
        let (_folder, path) = file_with(r#"{"kvBits": 3, "serverPort": 1}"#);
        for (key, value) in [
            ("kvBits", json!(5)),
            ("kvGroupSize", json!(48)),
            ("maxBatchSize", json!(0)),
            ("prefillChunkTokens", json!(0)),
            ("dequantizeBudgetGB", json!(-1.0)),
            ("maxResidentMemoryGB", json!(0)),
            ("hfEndpoint", json!("huggingface.co")),
            ("serverHost", json!(" ")),
            ("theme", json!("pink")),
            ("allowedHosts", json!(["mini.example.org", "http://mini"])),
            ("allowedOrigins", json!(["https://a*b.example"])),
            ("allowedOrigins", json!("*")),
        ] {
            let error = patch(&path, &json!({key: value})).unwrap_err();
            assert!(
                matches!(&error, Error::Invalid { key: named, .. } if named == key),
                "{key}: {error}"
            );
        }
        // A value that was wrong before does not prevent a change of something else.
        patch(&path, &json!({"serverPort": 2})).unwrap();
        patch(&path, &json!({"kvBits": 8})).unwrap();
    }

    #[test]
    fn a_refused_pattern_is_named() {
        let (_folder, path) = file_with("{}");
        let error = patch(&path, &json!({"allowedHosts": ["ok.example", "a b"]})).unwrap_err();
        assert!(error.to_string().contains("`a b`"), "{error}");
        let good = json!({"allowedHosts": ["*.example.org"], "allowedOrigins": ["*"]});
        let settings = patch(&path, &good).unwrap();
        assert!(settings.allowed_hosts[0].matches("a.example.org:8000"));
        assert!(settings.allowed_origins[0].matches("null"));
    }

    #[test]
    fn an_unreadable_file_is_never_overwritten_by_a_patch() {
        let (_folder, path) = file_with("[]");
        assert!(matches!(
            patch(&path, &json!({"serverPort": 1})),
            Err(Error::Unreadable { .. })
        ));
        assert_eq!(fs::read_to_string(&path).unwrap(), "[]");
    }
}
