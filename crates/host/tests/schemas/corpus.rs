//! Schemas that people wrote, from packages: they compile, or are refused with a keyword and its
//! place.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Instant,
};

use libtest_mimic::{Failed, Trial};
use macmlx_inference::InferenceError;
use serde_json::Value;

use crate::{
    figures::{Figures, count},
    functions,
    starter::{Starter, environment},
};

/// Lowest number of schemas; with fewer, the packages have changed.
const LEAST: usize = 1000;

/// Files larger than this are lists of data rather than something to generate.
const LARGEST_BYTES: u64 = 200_000;

pub(crate) struct Schema {
    /// Name of its file or function.
    pub(crate) name: String,
    pub(crate) schema: Value,
}

/// Schemas of files and of functions, by name.
pub(crate) fn schemas() -> Vec<Schema> {
    let mut schemas = files(&environment("MACMLX_SCHEMAS"));
    schemas.extend(functions::schemas(&environment("MACMLX_FUNCTIONS")));
    schemas
}

/// All schemas below a folder.
fn files(folder: &Path) -> Vec<Schema> {
    let mut files = Vec::new();
    collect(folder, &mut files);
    files.sort();
    let schema = |file: &PathBuf| {
        let schema: Value = serde_json::from_slice(&fs::read(file).ok()?).ok()?;
        is_schema(&schema).then(|| Schema {
            name: file.file_stem().unwrap().display().to_string(),
            schema,
        })
    };
    files.iter().filter_map(schema).collect()
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let Ok(metadata) = fs::metadata(&path) else {
            continue;
        };
        if metadata.is_dir() {
            if path.file_name().is_some_and(|name| name != "node_modules") {
                collect(&path, files);
            }
        } else if path.extension().is_some_and(|end| end == "json")
            && metadata.len() <= LARGEST_BYTES
        {
            files.push(path);
        }
    }
}

fn is_schema(value: &Value) -> bool {
    let has = |keys: &[&str]| keys.iter().any(|key| value.get(key).is_some());
    has(&["properties", "items", "anyOf", "oneOf", "allOf", "$ref"])
        && has(&["$schema", "$id", "id", "type"])
}

pub(crate) fn trials(
    corpus: &Arc<Vec<Schema>>,
    starter: &Arc<Starter>,
    figures: &Arc<Figures>,
) -> Vec<Trial> {
    let all = {
        let corpus = Arc::clone(corpus);
        Trial::test("corpus/is_there", move || {
            if corpus.len() >= LEAST {
                return Ok(());
            }
            Err(format!("only {} schemas were found", corpus.len()).into())
        })
    };
    let each = (0..corpus.len()).map(|index| {
        let (corpus, starter) = (Arc::clone(corpus), Arc::clone(starter));
        let figures = Arc::clone(figures);
        let name = format!("corpus/{index}-{}", corpus[index].name);
        Trial::test(name, move || {
            compile(&corpus[index].schema, &starter, &figures)
        })
    });
    std::iter::once(all).chain(each).collect()
}

fn compile(schema: &Value, starter: &Starter, figures: &Figures) -> Result<(), Failed> {
    let corpus = &figures.corpus;
    let begin = Instant::now();
    match starter.constraint(schema) {
        Ok(_) => {
            count(&corpus.compiled);
            corpus.times.lock().push(begin.elapsed());
            Ok(())
        }
        Err(InferenceError::Unsupported { param, reason }) => {
            count(&corpus.refused);
            assert_eq!(param, "schema");
            corpus.note(&reason);
            // A refusal says where.
            if reason.contains("(at `/") {
                return Ok(());
            }
            Err(reason.into())
        }
        Err(other) => Err(other.to_string().into()),
    }
}
