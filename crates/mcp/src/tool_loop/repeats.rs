//! Models that make the same call over and over.

use serde_json::{Map, Value};

/// The last call, and how often it came in a row.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    last: Option<(String, Map<String, Value>)>,
    count: u32,
}

impl Repeats {
    /// How often this call has come in a row now.
    pub(super) fn count(&mut self, tool: &str, arguments: &Map<String, Value>) -> u32 {
        let is_same = self
            .last
            .as_ref()
            .is_some_and(|(last, same)| last == tool && same == arguments);
        if is_same {
            self.count += 1;
        } else {
            self.last = Some((tool.to_owned(), arguments.clone()));
            self.count = 1;
        }
        self.count
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_equal_calls_in_a_row_count() {
        let mut repeats = Repeats::default();
        let mut count =
            |tool, arguments: Value| repeats.count(tool, arguments.as_object().unwrap());
        assert_eq!(count("a", json!({"x": 1, "y": 2})), 1);
        // The order of keys is no difference.
        assert_eq!(count("a", json!({"y": 2, "x": 1})), 2);
        assert_eq!(count("a", json!({"x": 2, "y": 2})), 1);
        assert_eq!(count("b", json!({"x": 2, "y": 2})), 1);
        assert_eq!(count("b", json!({"x": 2, "y": 2})), 2);
        assert_eq!(count("b", json!({"x": 2, "y": 2})), 3);
        assert_eq!(count("a", json!({"x": 1, "y": 2})), 1);
    }
}
