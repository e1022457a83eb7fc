//! Files of the UI that are made from others.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::folder;
use crate::{npm, packages, shell, workspace};

/// A file and the function that makes its text.
type Generated = (&'static str, fn(&Path) -> Result<String>);

const FILES: &[Generated] = &[
    ("src/lib/api/schema.gen.ts", types_of_control_routes),
    (
        "src/features/sampling/parameters.gen.ts",
        sampling_parameters,
    ),
    (
        "src/features/sampling/strings/en.gen.json",
        words_of_sampling_parameters,
    ),
    ("src/features/settings/table.gen.ts", table_of_settings),
    (
        "src/features/settings/strings/en.gen.json",
        words_of_settings,
    ),
    // Of all string files, those above too.
    ("src/lib/i18n/keys.gen.ts", keys_of_strings),
];

/// Writes the files anew.
pub(crate) fn generate() -> Result<()> {
    let ui = folder();
    for (file, make) in FILES {
        let path = ui.join(file);
        fs::write(&path, make(&ui)?).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// Fails when a file is not what it would be if it were made now.
pub(crate) fn check_generated() -> Result<()> {
    let ui = folder();
    for (file, make) in FILES {
        let path = ui.join(file);
        if fs::read_to_string(&path).unwrap_or_default() != make(&ui)? {
            bail!(
                "{} is out of date: run `cargo xtask generate`",
                path.display()
            );
        }
    }
    Ok(())
}

/// What describes the control routes.
fn document() -> Result<String> {
    shell::output(&mut Command::new(packages::example("openapi")?))
}

/// The sampling parameters of that document, in the order people read them.
fn read_parameters() -> Result<Vec<(String, Parameter)>> {
    let document: Value = serde_json::from_str(&document()?)?;
    let schema = &document["components"]["schemas"]["SamplingDefaults"]["properties"];
    let properties = Map::deserialize(schema).context("no schema of sampling parameters")?;
    properties
        .into_iter()
        .map(|(key, schema)| Ok((key, serde_json::from_value(schema)?)))
        .collect()
}

/// A sampling parameter as the document has it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Parameter {
    r#type: Vec<String>,
    title: String,
    description: String,
    minimum: Option<f64>,
    exclusive_minimum: Option<f64>,
    maximum: f64,
}

/// The parameters as forms need them.
fn sampling_parameters(_ui: &Path) -> Result<String> {
    let mut text =
        "// Made by `cargo xtask generate` from the table of sampling parameters; edit that \
                    instead.\n\n/** Numbers of a model or a chat, with their ranges. */\n\
                    export const SAMPLING_PARAMETERS = [\n"
            .to_owned();
    for (key, parameter) in read_parameters()? {
        let is_above = parameter.exclusive_minimum.is_some();
        let least = parameter.minimum.or(parameter.exclusive_minimum);
        let least = least.context("a parameter has a least value")?;
        let is_integer = parameter.r#type.iter().any(|name| name == "integer");
        writeln!(
            text,
            "  {{ key: '{key}', min: {least}, max: {}, isAbove: {is_above}, isInteger: {is_integer} }},",
            parameter.maximum,
        )?;
    }
    text.push_str("] as const;\n");
    Ok(text)
}

/// Their names and meanings in English.
fn words_of_sampling_parameters(_ui: &Path) -> Result<String> {
    let mut words = BTreeMap::new();
    for (key, parameter) in read_parameters()? {
        words.insert(format!("help.{key}"), parameter.description);
        words.insert(format!("label.{key}"), parameter.title);
    }
    Ok(format!("{}\n", serde_json::to_string_pretty(&words)?))
}

/// The rows of the screen of settings.
fn described_settings() -> Result<Vec<Map<String, Value>>> {
    let rows = shell::output(&mut Command::new(packages::example("settings")?))?;
    serde_json::from_str(&rows).context("no table of settings")
}

/// Where each setting stands on the screen, and how its value is given.
fn table_of_settings(_ui: &Path) -> Result<String> {
    let mut text =
        "// Made by `cargo xtask generate` from the table of settings; edit that instead.\n\n\
                    export const SETTINGS = {\n"
            .to_owned();
    for row in described_settings()? {
        let (key, group, mut control) =
            (text_of(&row, "key")?, &row["group"], row["control"].clone());
        if let Some(options) = control.get_mut("options").and_then(Value::as_array_mut) {
            for option in options {
                *option = option["value"].take();
            }
        }
        writeln!(text, "  {key}: {{ group: {group}, control: {control} }},")?;
    }
    text.push_str("} as const;\n");
    Ok(text)
}

/// The names and meanings of settings and of their choices in English.
fn words_of_settings(_ui: &Path) -> Result<String> {
    let mut words = BTreeMap::new();
    for row in described_settings()? {
        let key = text_of(&row, "key")?;
        words.insert(format!("help.{key}"), text_of(&row, "help")?.to_owned());
        words.insert(format!("label.{key}"), text_of(&row, "label")?.to_owned());
        for option in row["control"]["options"].as_array().into_iter().flatten() {
            let value = match &option["value"] {
                Value::String(value) => value.clone(),
                value => value.to_string(),
            };
            let label = option["label"].as_str().unwrap_or_default().to_owned();
            words.insert(format!("choice.{key}.{value}"), label);
        }
    }
    Ok(format!("{}\n", serde_json::to_string_pretty(&words)?))
}

fn text_of<'a>(row: &'a Map<String, Value>, name: &str) -> Result<&'a str> {
    row[name].as_str().with_context(|| format!("no {name}"))
}

/// Types of the control routes, from the document that describes them.
fn types_of_control_routes(ui: &Path) -> Result<String> {
    npm::link(ui)?;
    let document = document()?;
    let scratch = workspace::cache()?.join("openapi");
    workspace::create_folder(&scratch)?;
    let path = scratch.join(format!("{}.json", std::process::id()));
    fs::write(&path, document).with_context(|| format!("cannot write {}", path.display()))?;
    let types = shell::output(
        Command::new(npm::node()?.join("node"))
            .arg(ui.join("node_modules/openapi-typescript/bin/cli.js"))
            .arg(&path)
            .args([
                "--alphabetize",
                "--root-types",
                "--root-types-no-schema-prefix",
                // Objects of any shape hold something that must be looked at, not nothing.
                "--empty-objects-unknown",
            ])
            .current_dir(ui),
    );
    fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
    Ok(format!(
        "// Made by `cargo xtask generate` from the control routes; edit those instead.\n\n{}",
        types?
    ))
}

/// The type of all keys of strings, from the English string files.
fn keys_of_strings(ui: &Path) -> Result<String> {
    let mut text =
        "// Made by `cargo xtask generate` from the string files; edit those instead.\n\n\
                    /** `feature.key` of every string there is. */\nexport type Key =\n"
            .to_owned();
    for (feature, files) in string_files(ui)? {
        let mut keys = BTreeSet::new();
        for file in files {
            let strings = fs::read_to_string(&file)
                .with_context(|| format!("cannot read {}", file.display()))?;
            let strings: Map<String, Value> = serde_json::from_str(&strings)
                .with_context(|| format!("{} is not a table of strings", file.display()))?;
            keys.extend(strings.into_iter().map(|(key, _)| key));
        }
        for key in keys {
            writeln!(text, "  | '{feature}.{key}'")?;
        }
    }
    text.truncate(text.trim_end().len());
    text.push_str(";\n");
    Ok(text)
}

/// The English string files of each feature.
fn string_files(ui: &Path) -> Result<BTreeMap<String, Vec<PathBuf>>> {
    let common = vec![ui.join("src/lib/i18n/strings/en.json")];
    let mut files = BTreeMap::from([("common".into(), common)]);
    let features = ui.join("src/features");
    for entry in
        fs::read_dir(&features).with_context(|| format!("cannot read {}", features.display()))?
    {
        let folder = entry?.path();
        let there: Vec<PathBuf> = ["strings/en.json", "strings/en.gen.json"]
            .iter()
            .map(|file| folder.join(file))
            .filter(|file| file.exists())
            .collect();
        if let Some(name) = folder.file_name().and_then(|name| name.to_str())
            && !there.is_empty()
        {
            files.insert(name.to_owned(), there);
        }
    }
    Ok(files)
}
