//! Tells which output formats chat templates show: an object of templates by name in, an object of
//! the names of reasoning and tool format by template out.

use std::{collections::BTreeMap, io};

use macmlx_output::formats::{self, Format, Kind};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let templates: BTreeMap<String, String> = serde_json::from_reader(io::stdin().lock())?;
    let found: BTreeMap<&String, [Option<&str>; 2]> = templates
        .iter()
        .map(|(name, text)| {
            let formats = [Kind::Reasoning, Kind::ToolCalls];
            (
                name,
                formats.map(|kind| formats::detect(text, kind).map(Format::name)),
            )
        })
        .collect();
    serde_json::to_writer(io::stdout().lock(), &found)?;
    Ok(())
}
