//! Serves a folder of `owner/name` models as a hub: `hub-double FOLDER`. The first line it prints is
//! the endpoint; `PUT /double/behaviour` makes it misbehave.

use std::{io::Write, path::PathBuf};

use macmlx_test_support::hub_double::HubDouble;

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let folder = std::env::args_os().nth(1).map(PathBuf::from);
    let folder = folder.ok_or_else(|| std::io::Error::other("usage: hub-double FOLDER"))?;
    let double = HubDouble::of_folder(&folder).await?;
    let mut output = std::io::stdout();
    writeln!(output, "{}", double.url())?;
    output.flush()?;
    tokio::signal::ctrl_c().await
}
