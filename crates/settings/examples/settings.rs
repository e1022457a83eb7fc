//! Prints the settings that have a row on the screen, from which the UI's rows are made.

#![expect(clippy::print_stdout, reason = "its output is what it is for")]

fn main() -> Result<(), serde_json::Error> {
    println!(
        "{}",
        serde_json::to_string_pretty(macmlx_settings::SETTINGS)?
    );
    Ok(())
}
