//! Expected results kept as files beside their inputs.

use std::{fs, path::Path};

/// What a test does with its expected files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Golden {
    /// Compares; a difference or a missing file fails the test.
    Compare,
    /// Writes what came out, to be reviewed as a difference in version control.
    Bless,
}

impl Golden {
    /// Compares with or writes the file. The error is a line-by-line difference.
    pub fn check(self, path: &Path, actual: &str) -> Result<(), String> {
        if self == Self::Bless {
            return fs::write(path, actual)
                .map_err(|error| format!("cannot write {}: {error}", path.display()));
        }
        let expected = fs::read_to_string(path)
            .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        if expected == actual {
            return Ok(());
        }
        let difference = similar::TextDiff::from_lines(&expected, actual);
        Err(format!(
            "{} differs:\n{}",
            path.display(),
            difference.unified_diff().header("expected", "actual")
        ))
    }

    /// Checks JSON as [`Golden::check`] does, written so that people can review it.
    pub fn check_json(self, path: &Path, actual: &serde_json::Value) -> Result<(), String> {
        self.check(path, &format!("{actual:#}\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_and_missing_files_fail() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.txt");
        assert!(Golden::Compare.check(&path, "a\n").is_err());
        Golden::Bless.check(&path, "a\n").unwrap();
        assert_eq!(Golden::Compare.check(&path, "a\n"), Ok(()));
        let difference = Golden::Compare.check(&path, "b\n").unwrap_err();
        assert!(difference.contains("-a\n+b\n"), "{difference}");
    }
}
