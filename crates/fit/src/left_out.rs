//! Settings that exporters leave out of `config.json` where they equal the architecture's own.

use std::{borrow::Cow, collections::BTreeMap};

use serde_json::Value;

/// What configs leave out, by `model_type`: the settings as config.json would have them.
pub type LeftOut = BTreeMap<String, Value>;

/// Puts each of `settings` where `config` says nothing, also within objects that both have.
pub fn fill_in(config: &mut Value, settings: &Value) {
    match (config, settings) {
        (Value::Object(config), Value::Object(settings)) => {
            for (key, setting) in settings {
                fill_in(config.entry(key).or_insert(Value::Null), setting);
            }
        }
        (config @ Value::Null, settings) => *config = settings.clone(),
        _ => {}
    }
}

/// `config` with what it leaves out.
pub(crate) fn filled<'a>(config: &'a Value, left_out: &LeftOut) -> Cow<'a, Value> {
    let model_type = config["model_type"].as_str();
    match model_type.and_then(|model_type| left_out.get(model_type)) {
        Some(settings) => {
            let mut config = config.clone();
            fill_in(&mut config, settings);
            Cow::Owned(config)
        }
        None => Cow::Borrowed(config),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_a_config_leaves_out_is_filled_in() {
        let settings = json!({"a": 1, "b": 2, "c": {"d": 3, "e": [4]}, "f": {"g": 5}});
        let mut config = json!({"b": 7, "a": null, "c": {"d": 8}});
        fill_in(&mut config, &settings);
        let filled = json!({"b": 7, "a": 1, "c": {"d": 8, "e": [4]}, "f": {"g": 5}});
        assert_eq!(config, filled);
    }

    #[test]
    fn configs_of_other_types_stay() {
        let left_out = LeftOut::from([("known".to_owned(), json!({"a": 1}))]);
        for (config, expected) in [
            (
                json!({"model_type": "known"}),
                json!({"model_type": "known", "a": 1}),
            ),
            (
                json!({"model_type": "other"}),
                json!({"model_type": "other"}),
            ),
            (json!({}), json!({})),
            (json!(null), json!(null)),
        ] {
            assert_eq!(*filled(&config, &left_out), expected);
        }
    }
}
