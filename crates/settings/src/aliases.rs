//! Other names for models: `modelAliases` of the settings file, shared by everyone who has a handle.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use serde_json::json;

use crate::{Error, Home, file, watched::Watched};

/// The names a person gave to models. What others write into the settings file is seen at the next
/// question; what is changed here is in the file before the call returns.
#[derive(Debug)]
pub struct Aliases {
    file: Watched<BTreeMap<String, String>>,
}

impl Aliases {
    pub fn new(home: &Home) -> Self {
        Self {
            file: Watched::new(home.settings_file()),
        }
    }

    /// All names and the references they stand for.
    pub fn all(&self) -> Arc<BTreeMap<String, String>> {
        self.file.get(read)
    }

    /// What a name stands for. Case does not matter, nor does Ollama's tag for "no tag".
    pub fn target(&self, name: &str) -> Option<String> {
        let all = self.all();
        let name = key_of(&all, name)?;
        all.get(&name).cloned()
    }

    /// Has a name stand for a model, whatever it stood for before.
    pub fn add(&self, name: &str, reference: &str) -> Result<(), Error> {
        let name = name.trim();
        if name.is_empty() || name.chars().any(char::is_control) {
            return Err(Error::Invalid {
                key: "modelAliases".into(),
                reason: "a name is visible text on one line".into(),
            });
        }
        let _writing = self.file.writing();
        let path = self.file.path();
        file::update(path, |settings| {
            let mut changes = BTreeMap::from([(name.to_owned(), json!(reference))]);
            let known = key_of(&settings.model_aliases, name);
            if let Some(known) = known.filter(|known| known != name) {
                changes.insert(known, json!(null));
            }
            json!({"modelAliases": changes})
        })?;
        Ok(())
    }

    /// Forgets a name; returns whether it was there.
    pub fn remove(&self, name: &str) -> Result<bool, Error> {
        let _writing = self.file.writing();
        let path = self.file.path();
        let mut was_there = false;
        file::update(path, |settings| {
            match key_of(&settings.model_aliases, name) {
                Some(known) => {
                    was_there = true;
                    json!({"modelAliases": {known: null}})
                }
                None => json!({}),
            }
        })?;
        Ok(was_there)
    }
}

fn read(path: &Path) -> Result<BTreeMap<String, String>, Error> {
    Ok(file::read(path)?.model_aliases)
}

/// The name as it is written in the file.
fn key_of(aliases: &BTreeMap<String, String>, name: &str) -> Option<String> {
    if aliases.contains_key(name) {
        return Some(name.to_owned());
    }
    let wanted = normalize(name);
    aliases
        .keys()
        .find(|known| normalize(known) == wanted)
        .cloned()
}

fn normalize(name: &str) -> String {
    let name = name.trim().to_lowercase();
    name.strip_suffix(":latest")
        .map(str::to_owned)
        .unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::Value;

    use super::*;

    fn home_with(settings: &Value) -> (tempfile::TempDir, Home) {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        fs::write(home.settings_file(), settings.to_string()).unwrap();
        (folder, home)
    }

    #[test]
    fn names_are_kept_beside_the_other_settings() {
        let (_folder, home) = home_with(&json!({"serverPort": 1, "fromElsewhere": true}));
        let aliases = Aliases::new(&home);
        aliases.add("gpt-4o", "org/small").unwrap();
        aliases.add("Coder:latest", "org/large").unwrap();
        assert_eq!(aliases.target("gpt-4o").as_deref(), Some("org/small"));
        assert_eq!(aliases.target("coder").as_deref(), Some("org/large"));
        assert_eq!(
            aliases.target("GPT-4o:latest").as_deref(),
            Some("org/small")
        );
        assert_eq!(aliases.target("gpt-4"), None);
        let written: Value =
            serde_json::from_slice(&fs::read(home.settings_file()).unwrap()).unwrap();
        assert_eq!(
            written,
            json!({
                "serverPort": 1,
                "fromElsewhere": true,
                "modelAliases": {"Coder:latest": "org/large", "gpt-4o": "org/small"},
            })
        );
    }

    #[test]
    fn a_name_stands_for_one_model() {
        let (_folder, home) = home_with(&json!({}));
        let aliases = Aliases::new(&home);
        aliases.add("coder", "one").unwrap();
        aliases.add("Coder:latest", "two").unwrap();
        assert_eq!(aliases.all().len(), 1);
        assert_eq!(aliases.target("coder").as_deref(), Some("two"));
        assert!(aliases.remove("CODER").unwrap());
        assert!(!aliases.remove("coder").unwrap());
        assert!(aliases.all().is_empty());
    }

    #[test]
    fn what_others_write_is_seen() {
        let (_folder, home) = home_with(&json!({}));
        let (ours, theirs) = (Aliases::new(&home), Aliases::new(&home));
        assert_eq!(ours.target("a"), None);
        theirs.add("a", "one").unwrap();
        assert_eq!(ours.target("a").as_deref(), Some("one"));
        theirs.add("a", "two").unwrap();
        assert_eq!(ours.target("a").as_deref(), Some("two"));
        theirs.remove("a").unwrap();
        assert_eq!(ours.target("a"), None);
    }

    #[test]
    fn a_damaged_file_is_not_written_over() {
        let (_folder, home) = home_with(&json!({}));
        let aliases = Aliases::new(&home);
        aliases.add("a", "one").unwrap();
        assert_eq!(aliases.all().len(), 1);
        fs::write(home.settings_file(), "{").unwrap();
        assert_eq!(aliases.target("a").as_deref(), Some("one"));
        assert!(aliases.add("b", "two").is_err());
        assert_eq!(fs::read(home.settings_file()).unwrap(), b"{");
    }

    #[test]
    fn nothing_is_no_name() {
        let (_folder, home) = home_with(&json!({}));
        let aliases = Aliases::new(&home);
        for name in ["", "  ", "a\nb"] {
            assert!(aliases.add(name, "one").is_err(), "{name:?}");
        }
    }
}
