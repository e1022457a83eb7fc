//! What each MCP tool may do without being asked about: `toolPolicies` of the settings file.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use crate::{Error, Home, file, watched::Watched};

/// Whether a tool may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ToolPolicy {
    /// A person is asked before each call.
    #[default]
    Ask,
    Always,
    /// The model is not told of the tool.
    Never,
}

/// Policies by tool (`server__tool`). What others write into the settings file is seen at the next
/// question; what is changed here is in the file before the call returns.
#[derive(Debug)]
pub struct ToolPolicies {
    file: Watched<BTreeMap<String, ToolPolicy>>,
}

impl ToolPolicies {
    pub fn new(home: &Home) -> Self {
        Self {
            file: Watched::new(home.settings_file()),
        }
    }

    /// Tools with a policy of their own; all others are asked about.
    pub fn all(&self) -> Arc<BTreeMap<String, ToolPolicy>> {
        self.file.get(read)
    }

    pub fn of(&self, tool: &str) -> ToolPolicy {
        self.all().get(tool).copied().unwrap_or_default()
    }

    /// Blocks on the disk.
    pub fn set(&self, tool: &str, policy: ToolPolicy) -> Result<(), Error> {
        let _writing = self.file.writing();
        // The default is not worth a line in the file.
        let value = match policy {
            ToolPolicy::Ask => json!(null),
            ToolPolicy::Always | ToolPolicy::Never => json!(policy),
        };
        file::patch(self.file.path(), &json!({"toolPolicies": {tool: value}}))?;
        Ok(())
    }
}

fn read(path: &Path) -> Result<BTreeMap<String, ToolPolicy>, Error> {
    Ok(file::read(path)?.tool_policies)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::Value;

    use super::*;

    #[test]
    fn policies_are_kept_beside_the_other_settings() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        fs::write(home.settings_file(), r#"{"serverPort": 1}"#).unwrap();
        let policies = ToolPolicies::new(&home);
        assert_eq!(policies.of("time__now"), ToolPolicy::Ask);
        policies.set("time__now", ToolPolicy::Always).unwrap();
        policies.set("files__write", ToolPolicy::Never).unwrap();
        assert_eq!(policies.of("time__now"), ToolPolicy::Always);
        assert_eq!(policies.of("files__write"), ToolPolicy::Never);
        policies.set("time__now", ToolPolicy::Ask).unwrap();
        let written: Value =
            serde_json::from_slice(&fs::read(home.settings_file()).unwrap()).unwrap();
        assert_eq!(
            written,
            json!({"serverPort": 1, "toolPolicies": {"files__write": "never"}})
        );
    }

    #[test]
    fn what_is_no_policy_is_asked_about_and_kept() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        fs::write(
            home.settings_file(),
            r#"{"toolPolicies": {"a__b": "maybe"}}"#,
        )
        .unwrap();
        let policies = ToolPolicies::new(&home);
        assert_eq!(policies.of("a__b"), ToolPolicy::Ask);
        assert!(policies.set("c__d", ToolPolicy::Always).is_err());
        let text = fs::read_to_string(home.settings_file()).unwrap();
        assert!(text.contains("maybe") && !text.contains("c__d"));
    }
}
