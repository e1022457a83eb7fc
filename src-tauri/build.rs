//! Makes the shell's commands subject to permissions, and embeds the built UI.

use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let page = Path::new("../ui/dist/index.html");
    println!("cargo:rerun-if-changed={}", page.display());
    if !page.exists() {
        return Err("the window's page is missing: run `npm ci && npm run build` in `ui`".into());
    }
    let commands = tauri_build::AppManifest::new().commands(&["door_request", "door_cancel"]);
    tauri_build::try_build(tauri_build::Attributes::new().app_manifest(commands))?;
    Ok(())
}
