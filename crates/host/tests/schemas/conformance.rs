//! The JSON Schema test suite: what compiles must take no instance that the suite calls invalid.

use std::{fs, path::Path, sync::Arc};

use libtest_mimic::{Failed, Trial};
use serde_json::Value;

use crate::{
    accepts::accepts,
    figures::{Figures, count},
    starter::{Starter, environment},
};

/// Folders of the suite, with the draft's own name.
const DRAFTS: [(&str, &str); 5] = [
    ("draft4", "http://json-schema.org/draft-04/schema#"),
    ("draft6", "http://json-schema.org/draft-06/schema#"),
    ("draft7", "http://json-schema.org/draft-07/schema#"),
    (
        "draft2019-09",
        "https://json-schema.org/draft/2019-09/schema",
    ),
    (
        "draft2020-12",
        "https://json-schema.org/draft/2020-12/schema",
    ),
];

pub(crate) fn trials(starter: &Arc<Starter>, figures: &Arc<Figures>) -> Vec<Trial> {
    let suite = environment("MACMLX_SCHEMA_SUITE");
    let mut trials = Vec::new();
    for (draft, uri) in DRAFTS {
        let mut files: Vec<_> = fs::read_dir(suite.join(draft))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|end| end == "json"))
            .collect();
        files.sort();
        for file in files {
            let name = format!("suite/{draft}/{}", file.file_stem().unwrap().display());
            let (starter, figures) = (Arc::clone(starter), Arc::clone(figures));
            trials.push(Trial::test(name, move || {
                check(&file, uri, &starter, &figures)
            }));
        }
    }
    trials
}

fn check(file: &Path, uri: &str, starter: &Starter, figures: &Figures) -> Result<(), Failed> {
    let groups: Vec<Value> = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    let suite = &figures.suite;
    let mut wrong = Vec::new();
    for group in groups {
        let mut schema = group["schema"].clone();
        if let Value::Object(keywords) = &mut schema {
            keywords.entry("$schema").or_insert_with(|| uri.into());
        }
        let Ok(constraint) = starter.constraint(&schema) else {
            count(&suite.refused);
            continue;
        };
        count(&suite.compiled);
        for test in group["tests"].as_array().unwrap() {
            let is_valid = test["valid"] == true;
            let text = test["data"].to_string();
            let is_taken = accepts(constraint.clone(), starter.chat.tokenizer(), &text);
            count(match (is_valid, is_taken) {
                (true, true) => &suite.valid_accepted,
                (true, false) => &suite.valid_refused,
                (false, true) => &suite.invalid_accepted,
                (false, false) => &suite.invalid_refused,
            });
            if is_taken && !is_valid {
                let what = format!("{}: {}", group["description"], test["description"]);
                wrong.push(format!("{what}\n  {schema}\n  takes {text}"));
            }
        }
    }
    if wrong.is_empty() {
        return Ok(());
    }
    Err(wrong.join("\n").into())
}
