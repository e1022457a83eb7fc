//! Prints the document of the control routes, from which the UI's types are made.

#![expect(clippy::print_stdout, reason = "its output is what it is for")]

fn main() -> Result<(), serde_json::Error> {
    println!(
        "{}",
        serde_json::to_string_pretty(&macmlx_control::document())?
    );
    Ok(())
}
